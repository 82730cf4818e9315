"""The boundary: did the state survive the crossing? Pure decisions about what left and what arrived."""

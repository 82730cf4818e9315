"""What users hold: a Watch, its Runs, the primitives and the flows over them."""

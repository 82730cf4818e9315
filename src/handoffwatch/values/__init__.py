"""How any JSON-like state is read safely."""

"""The ready-made verifiers, one module for each way to read another system."""

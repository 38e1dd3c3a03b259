"""scanshrink: find programs the XLA:TPU compiler cannot compile, and shrink them until a person can read them."""

"""The oracle: program x target -> outcome, by the real XLA:TPU compiler in isolated worker processes."""

"""The corpus: distinct failures in a folder, each a minimal program with all that is known about it."""

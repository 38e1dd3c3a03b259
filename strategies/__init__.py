"""Hypothesis strategies for nested scan and checkpoint programs."""

"""Comparison of methods on the same people, the same answers and the same knowledge."""

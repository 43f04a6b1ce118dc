"""Helpers of the tests: reference implementations, simulated situations, and servers of their own."""

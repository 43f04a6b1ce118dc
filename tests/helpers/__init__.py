"""Test helpers: reference implementations, simulated situations and test servers."""

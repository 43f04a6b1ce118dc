"""Compiled kernels, tables and sums that are the same on any number of threads."""

"""Compiled kernels, tables and sums whose results do not depend on the number of threads."""

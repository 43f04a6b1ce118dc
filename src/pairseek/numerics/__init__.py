"""Compiled kernels, tables and sums, with results that do not depend on the number of threads."""

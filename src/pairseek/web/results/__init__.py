"""Collected data: tables, bundles, codebook, quality and populations."""

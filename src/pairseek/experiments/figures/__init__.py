"""Figures of results, drawn with matplotlib, which is imported on first use."""

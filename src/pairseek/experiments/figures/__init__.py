"""Figures of results with matplotlib, which is imported only when a figure is drawn."""

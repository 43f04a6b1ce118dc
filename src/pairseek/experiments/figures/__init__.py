"""Drawings of results, by matplotlib. Nothing here is loaded until something is drawn."""

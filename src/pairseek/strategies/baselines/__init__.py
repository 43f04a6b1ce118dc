"""Baselines of the paper that choose pairs by themselves, and their geometry."""

"""Procedures that serve as baselines in the paper, and their geometry."""

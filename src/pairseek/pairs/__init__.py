"""Pairs to ask about: strategies, sources of candidate pairs, features, rest and selection."""

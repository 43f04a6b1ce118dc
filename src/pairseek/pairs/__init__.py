"""Choice of the next pair: strategies, sources of candidate pairs, features, rest rules and selection."""

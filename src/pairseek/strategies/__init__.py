"""Ways of choosing the next pair."""

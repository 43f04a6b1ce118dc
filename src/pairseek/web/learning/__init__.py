"""Learning of studies from their own people, in the background."""

"""Learning of studies from their participants, in the background."""

"""Studies: configuration, creation, items, media and cards."""

"""Studies: configuration, creation, items, media, cards and forms."""

"""Terminal interface of the demo: keys, frames, views and the saved search."""

"""Types, validation, text and files that every other package uses."""

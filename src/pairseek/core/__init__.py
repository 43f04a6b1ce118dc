"""Types, validation, text and file handling shared by every other package."""

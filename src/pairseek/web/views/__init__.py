"""View functions: contexts of the pages, computed from the service."""

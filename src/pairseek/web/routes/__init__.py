"""Routes of the service, one module per group of pages or endpoints."""

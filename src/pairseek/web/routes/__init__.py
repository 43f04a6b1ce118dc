"""Routes of the service, one module per group."""

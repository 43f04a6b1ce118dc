"""Access to the service: accounts, tokens, limits on requests, and cross-origin rules."""

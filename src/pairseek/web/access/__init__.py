"""Access to the service: accounts, tokens, request limits and cross-origin rules."""

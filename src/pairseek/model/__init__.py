"""The model: items, response, prior, and what theory says of them."""

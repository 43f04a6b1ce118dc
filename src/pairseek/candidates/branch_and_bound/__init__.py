"""Branch-and-bound search over pairs of items."""

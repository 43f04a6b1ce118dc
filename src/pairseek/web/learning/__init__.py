"""Background learning of studies from their own people."""

"""Interactive search for one person's user point."""

from pairseek.search.search import Search

__all__ = ["Search"]

"""The interactive search for one person's point."""

from pairseek.search.search import Search

__all__ = ["Search"]

"""Searches from states and configurations, for tests that compare the service and quizzes with `Search`."""

from __future__ import annotations

import pairseek as ps
from pairseek.search.configuration import SearchConfiguration
from pairseek.search.state import SearchState


def search_of(configuration: SearchConfiguration, seed: int = 0, events=()) -> ps.Search:
    """Return a search with this configuration after these events."""
    return ps.Search._from_saved((SearchState(configuration, seed, tuple(events)), ()))

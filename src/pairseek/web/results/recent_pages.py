"""Result pages of the last seconds, so that loading a page again and again does not compute it every time."""

from __future__ import annotations

import threading
from collections.abc import Callable

from cachetools import TTLCache

# Seconds for which a page is kept. Afterwards it includes what a researcher has voided meanwhile.
_KEPT_SECONDS = 10.0
_KEPT_PAGES = 500


class RecentPages:
    """Result pages by session and version."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pages: TTLCache[tuple[str, int], str] = TTLCache(_KEPT_PAGES, _KEPT_SECONDS)

    def get(self, session: str, version: int, rendered: Callable[[], str]) -> str:
        """Return a page, rendered unless it is kept."""
        with self._lock:
            page = self._pages.get((session, version))
        if page is None:
            page = rendered()
            with self._lock:
                self._pages[session, version] = page
        return page

    def clear(self) -> None:
        """Remove all pages after a deletion."""
        with self._lock:
            self._pages.clear()

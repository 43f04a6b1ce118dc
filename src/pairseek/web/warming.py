"""Going once through all that an answer takes, so that nothing is compiled while a person waits."""

from __future__ import annotations

import logging

import numpy as np

from pairseek.errors import PairseekError
from pairseek.items import Items
from pairseek.posteriors import Particles
from pairseek.search import Search
from pairseek.store import studies
from pairseek.store.database import Database
from pairseek.web.catalogue import Catalogue, Study

_ROUNDS = 5
# Studies are gone through newest first, and those that nobody made lately can wait for their first visitor.
_MOST = 10

logger = logging.getLogger("pairseek.web")


def warm_up() -> None:
    """What every study needs."""
    points = np.random.default_rng(0).normal(size=(600, 3))
    for items in (Items(points[:40]), Items(points)):
        _go_through(Search(items, posterior=Particles(200), rng=0))


def warm_study(study: Study) -> None:
    """What this study needs: its strategy, its posterior, its candidates."""
    try:
        _go_through(study.configuration.search(study.items, 0))
    except PairseekError:
        # A study that cannot be searched says so to whoever visits it.
        logger.warning("a study could not be tried", extra={"facts": {"study": study.row.slug}})


def warm_studies(database: Database) -> dict[int, Study]:
    """The open studies of a database, as they were read."""
    catalogue = Catalogue(database)
    rows = [row for row in database.read(studies.every) if row.is_open]
    for row in rows[:_MOST]:
        warm_study(catalogue.named(row.slug))
    return catalogue.known


def _go_through(search: Search) -> None:
    for _ in range(_ROUNDS):
        if search.finished is not None:
            break
        query = search.ask()
        search.tell(query, winner=query.left)
        search.expect(query.left, query.right)
    search.recommend(3)

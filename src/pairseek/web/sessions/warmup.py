"""Warm-up of studies: loading, and compilation of the kernels that they use, before the server accepts requests.

It has a time limit, because the port opens only afterwards; the kernels of the remaining studies are compiled at the
first visit.
"""

from __future__ import annotations

import logging
import math
from time import monotonic

import numpy as np

from pairseek.embed.active import most_informative
from pairseek.embed.placement import Placement, random_triplets
from pairseek.embed.triplets import Triplets
from pairseek.errors import PairseekError
from pairseek.search.warmup import run_search
from pairseek.store import studies
from pairseek.store.database import Database
from pairseek.web.studies.catalogue import Catalogue, Study

# Number of studies to warm up, newest first.
_MAX_STUDIES = 10
# Time limit for all of them together.
_MAX_SECONDS = 20.0

logger = logging.getLogger("pairseek.web")


def warm_study(study: Study, until: float = math.inf) -> None:
    """Compile the kernels that a study uses, until a time on the monotonic clock."""
    if study.configuration.is_similarity:
        triplets = Triplets(random_triplets(4, 20, np.random.default_rng(0)), range(4))
        most_informative(Placement.fit(triplets, 2), np.random.default_rng(0), asked=triplets.rows[:1])
        return
    try:
        # A study created before limits existed could take arbitrarily long.
        study.configuration.check_limits(study.items)
        run_search(study.configuration.resolved(study.items), until)
    except PairseekError:
        # The first visitor of the study will see the error.
        logger.warning("a study could not be warmed up", extra={"facts": {"study": study.row.slug}})


def warm_studies(database: Database, seconds: float = _MAX_SECONDS) -> dict[int, Study]:
    """Warm up the newest open studies for at most ``seconds``, and return the loaded ones by id."""
    until = monotonic() + seconds
    catalogue = Catalogue(database)
    rows = [row for row in database.read(studies.all_studies) if row.is_open]
    for row in rows[:_MAX_STUDIES]:
        if monotonic() > until:
            logger.warning("some studies were not warmed up in time")
            break
        warm_study(catalogue.by_slug(row.slug), until)
    return catalogue.cached_studies

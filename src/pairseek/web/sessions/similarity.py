"""State of a session in a similarity study, and a factory of states for both kinds of study."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from scipy.special import expit

from pairseek.core.lazy import cached_property
from pairseek.core.types import JSON, FloatArray, IntArray
from pairseek.embed.active import most_informative
from pairseek.embed.placement import Placement, random_triplets
from pairseek.embed.similarity_map import SimilarityMap
from pairseek.store.events import AnsweredPair, AskedPair
from pairseek.web.sessions.parts import SessionParts
from pairseek.web.sessions.schedule import pair_at, scheduled_pair
from pairseek.web.sessions.state import SessionState
from pairseek.web.studies.configuration import StudyConfiguration

# Makes random draws of triplets independent of the schedule's and the search's, which use the same seed.
_TRIPLET_KEY = 0x51A1


class SimilarityState(SessionState):
    """State of a session in which people compare two items with an anchor.

    The next triplet depends on the map that the session began with, and on the triplets that it has asked since.
    """

    @property
    def placement(self) -> Placement | None:
        """Placement of the items that the session began with; None for the first people of a study."""
        learned = self.parts.population
        return learned.placement if isinstance(learned, SimilarityMap) else None

    @cached_property
    def next_pair(self) -> tuple[AskedPair | None, str | None]:
        """Next triplet, or None and the reason why the session has ended."""
        answer_limit = self.configuration.answers
        if answer_limit is not None and self.answer_count >= answer_limit:
            return None, f"{answer_limit} answers were given"
        self.parts.check()
        scheduled = scheduled_pair(self.configuration, self.items, self.seed, self.done)
        return self._most_informative_pair() if scheduled is None else scheduled, None

    def _most_informative_pair(self) -> AskedPair:
        """Return the most informative triplet, or a random one without a map."""
        rng = np.random.default_rng(np.random.SeedSequence([self.seed, len(self.done), _TRIPLET_KEY]))
        placement = self.placement
        if placement is None:
            row = random_triplets(self.items.n, 1, rng)[0]
        else:
            candidates = int(self.parts.record["candidates"])
            row, _ = most_informative(placement, rng, asked=self._asked_triplets(), candidates=candidates)
        anchor, left, right = (str(self.items.ids[item]) for item in row.tolist())
        strategy = "random" if placement is None else "infogain"
        return pair_at(len(self.done), "strategy", left, right, anchor=anchor, strategy=strategy)

    def _asked_triplets(self) -> IntArray:
        """Return the (t, 3) triplets that this session has asked, except repeated and attention triplets."""
        pairs = [pair for pair in self.done if pair.kind in ("strategy", "random")]
        rows = [self._rows_of(pair.anchor, pair.left, pair.right) for pair in pairs]
        return np.array(rows, dtype=np.int64).reshape(-1, 3)

    def _rows_of(self, *names: str | None) -> list[int]:
        return [self.items.index(name) for name in names]

    def estimate_record(self) -> JSON:
        """Return an empty record, because similarity judgements say nothing about the person."""
        return {}

    def final(self) -> JSON:
        """Return an empty record, because the session has no result."""
        return {}

    @property
    def covariance(self) -> FloatArray:
        """Empty matrix, because these sessions have no estimate."""
        return np.empty((0, 0))

    def _details(self, pair: AskedPair) -> JSON:
        if self.placement is None:
            return pair.details
        row = np.array([self._rows_of(pair.details["anchor"], pair.left, pair.right)])
        return {
            **pair.details,
            "information": float(self.placement.information(row, self._asked_triplets())[0]),
            "probability_left": float(expit(self.placement.logits(row)[0])),
        }

    @property
    def remaining(self) -> int | None:
        """Number of remaining answers."""
        answer_limit = self.configuration.answers
        return None if answer_limit is None else max(0, answer_limit - self.answer_count)


def session_state(
    configuration: StudyConfiguration, parts: SessionParts, seed: int, done: Iterable[AnsweredPair] = ()
) -> SessionState:
    """Return the state of a session, whichever kind its study is."""
    state_type = SimilarityState if configuration.is_similarity else SessionState
    return state_type(configuration, parts, seed, tuple(done))

"""Plan of a quiz: its search, and its size and time before it is compiled."""

from __future__ import annotations

from dataclasses import dataclass

from pairseek.core.media import MEDIA
from pairseek.core.validation import is_number, whole
from pairseek.errors import InvalidParameter
from pairseek.model.items import Items
from pairseek.quiz.compilation import RECOMMENDED, CostProbe, TreeCost
from pairseek.quiz.content import QuizSource, check_media
from pairseek.quiz.encoding import encoded_size
from pairseek.quiz.settings import check_settings
from pairseek.quiz.tree import items_of
from pairseek.search.state import SearchState

ANSWERS = 12
"""Number of answers of a quiz where no study gives one."""
_FIXED = 8_000
"""Characters of texts and map."""
_PUNCTUATION = 6
"""Characters beside a value and its id in the columns of items."""


@dataclass(frozen=True)
class QuizLimits:
    """Largest size of the tree and longest time of a compilation."""

    megabytes: float = 5.0
    minutes: float = 60.0

    def __post_init__(self) -> None:
        for name in ("megabytes", "minutes"):
            value = getattr(self, name)
            if not (is_number(value) and value > 0):
                raise InvalidParameter(f"the limit {name} is {value!r}: give a number above 0", field=name)

    def fit(self, size: int, seconds: float) -> bool:
        """Return whether a tree is within the limits."""
        return size <= 1e6 * self.megabytes and seconds <= 60.0 * self.minutes


@dataclass(frozen=True, eq=False)
class QuizPlan:
    """A quiz before its compilation.

    Attributes
    ----------
    source, search, seed, answers
        What is compiled: each path is asked by this search until it has so many answers.
    cost
        Numbers of pairs and results, and processor time.
    seconds
        Expected time with the processes of the plan.
    size
        Largest number of bytes of the tree, pictures not included.
    jobs
        Number of processes.
    notes
        Sentences about settings of the study that are left out.
    """

    source: QuizSource
    search: SearchState
    seed: int
    answers: int
    cost: TreeCost
    seconds: float
    size: int
    jobs: int
    notes: tuple[str, ...]


def plan_quiz(
    source: QuizSource,
    *,
    answers: int | None = None,
    seed: int | None = None,
    jobs: int = 1,
    limits: QuizLimits | None = None,
) -> QuizPlan:
    """Return the plan of a quiz; raise an `InvalidParameter` if the study has none, or it is beyond the limits.

    Parameters
    ----------
    source
        Study and items.
    answers
        Number of answers. None: that of the study.
    seed
        Seed of the search. None: that of the study, or 0.
    jobs
        Number of processes.
    limits
        Largest size and longest time.
    """
    limits = QuizLimits() if limits is None else limits
    notes = tuple(check_settings(source.configuration))
    check_media(source.items)
    answers = whole(source.configuration.answers if answers is None else answers, "the number of answers")
    seed = (source.configuration.seed or 0) if seed is None else whole(seed, "the seed", 0)
    search = source.search(seed)
    items_of(search)
    probe = CostProbe(search, answers)

    def expected(depth: int) -> tuple[int, float]:
        return tree_size(source.items, depth), probe.cost(depth).elapsed(jobs)

    size, seconds = expected(answers)
    if not limits.fit(size, seconds):
        fitting = next((depth for depth in range(answers - 1, 0, -1) if limits.fit(*expected(depth))), None)
        advice = "no number of answers fits" if fitting is None else f"at most {fitting} answers fit"
        raise InvalidParameter(
            f"{answers} answers have {2**answers - 1:,} pairs and {2**answers:,} results: about {size / 1e6:,.1f} MB "
            f"and {minutes_in_words(seconds)} with {jobs} processes, and the limits are {limits.megabytes:g} MB and "
            f"{limits.minutes:g} min; {advice}, or raise --megabytes and --minutes",
            field="answers",
        )
    return QuizPlan(source, search, seed, answers, probe.cost(answers), seconds, size, jobs, notes)


def tree_size(items: Items, answers: int) -> int:
    """Return the largest number of bytes of the tree of a quiz."""
    shown: int = min(items.n, (2 + RECOMMENDED) * 2**answers)
    texts = [items.ids, items.labels, *(items.data[name] for name in MEDIA if name in items.data)]
    written = sum(len(str(value).encode()) + _PUNCTUATION for column in texts for value in column)
    return _FIXED + written * shown // items.n + encoded_size(items.n, items.d, answers, min(RECOMMENDED, items.n))


def minutes_in_words(seconds: float) -> str:
    """Return a time in seconds, minutes or hours."""
    if seconds < 100:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:,.0f} h"

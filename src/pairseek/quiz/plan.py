"""Plan of a quiz: settings that it follows, and forecast cost against the limits."""

from __future__ import annotations

from dataclasses import dataclass

from pairseek.core.media import MEDIA
from pairseek.core.validation import is_number, whole
from pairseek.errors import InvalidParameter
from pairseek.model.items import Items
from pairseek.quiz.compilation import RECOMMENDATION_COUNT, CostProbe, TreeCost
from pairseek.quiz.content import QuizSource, check_media
from pairseek.quiz.encoding import encoded_size
from pairseek.quiz.tree import items_of
from pairseek.search.state import SearchState
from pairseek.web.studies.configuration import StudyConfiguration

FOLLOWED_SETTINGS = frozenset(
    {
        "title", "slug", "language", "question", "instructions", "debrief", "strategy", "response", "prior", "goal",
        "texts", "posterior", "candidates", "rest", "askable", "coordinates", "standardize", "scaled", "answers",
        "stop", "offer.undo", "seed",
    }
)  # fmt: skip
"""Settings that a quiz follows; a stop rule ends a path, and an unknown reliability is inferred along each path."""

IGNORED_SETTINGS = {
    "consent": "a quiz stores and sends no data",
    "practice": "the first answer of a quiz can be undone",
    "play": "a quiz has neither sounds nor videos",
    "resume": "a quiz keeps no sessions",
    "retention": "a quiz keeps no data",
    "learn": "a quiz collects no answers to learn from",
    "accent": "a quiz has the colours of its page",
    "closes": "the files of a quiz can be opened as long as you serve them",
    "quota": "a quiz counts nobody",
    "completion": "a quiz sends nobody back; use the callback, see docs/how-to/embedding-a-quiz.md",
}
"""Settings that have no effect in a quiz, with the reason."""

REFUSED_SETTINGS = {
    "offer.tie": "a question of a quiz has two outcomes, and a tie would be a third",
    "offer.skip": "a question of a quiz has two outcomes, and a skip would be a third",
    "repeated": "a quiz collects no answers, so their consistency cannot be measured",
    "random": "the random pairs of a quiz would be the same for everybody",
    "attention": "a quiz collects no answers, so attention cannot be checked",
    "invited": "a quiz has no server that could check invitations",
    "kind": "a quiz asks for preferences between two items",
    "dimensions": "a quiz uses the coordinates of its items",
    "names": "a quiz always shows the names of its items",
    "questions": "a quiz keeps no replies",
    "result": "the files of a quiz contain all results, so they cannot be hidden",
}
"""Settings that a quiz cannot follow, with the reason."""


def check_settings(configuration: StudyConfiguration) -> list[str]:
    """Raise `InvalidParameter` if a quiz cannot follow a setting; return a note for each ignored setting."""
    notes = []
    for name in changed_settings(configuration):
        if name in FOLLOWED_SETTINGS:
            continue
        if name not in IGNORED_SETTINGS:
            reason = REFUSED_SETTINGS.get(name, "quizzes do not support it")
            raise InvalidParameter(
                f"a study with the setting {name!r} cannot be compiled: {reason}; compile a study file without it",
                field=name,
            )
        notes.append(f"the setting {name!r} has no effect: {IGNORED_SETTINGS[name]}")
    return notes


def changed_settings(configuration: StudyConfiguration) -> list[str]:
    """Return the names of settings that differ from their defaults, with the fields of ``offer`` listed separately."""
    defaults = StudyConfiguration(title=configuration.title)
    names = []
    for name in StudyConfiguration.model_fields:
        value, default = getattr(configuration, name), getattr(defaults, name)
        if name == "offer":
            fields = type(value).model_fields
            names += [f"offer.{field}" for field in fields if getattr(value, field) != getattr(default, field)]
        elif value != default:
            names.append(name)
    return names


DEFAULT_ANSWERS = 12
"""Default number of answers of a quiz made from an items file."""
_FIXED_SIZE = 8_000
"""Bytes for texts and map."""
_PUNCTUATION_SIZE = 6
"""Bytes for quotes and separators around each value in the columns of items."""


@dataclass(frozen=True)
class QuizLimits:
    """Maximum size of a tree, and maximum time of a compilation."""

    megabytes: float = 5.0
    minutes: float = 60.0

    def __post_init__(self) -> None:
        for name in ("megabytes", "minutes"):
            value = getattr(self, name)
            if not (is_number(value) and value > 0):
                raise InvalidParameter(f"the limit {name} is {value!r}: give a number above 0", field=name)

    def allow(self, size: int, seconds: float) -> bool:
        """Return whether a tree is within the limits."""
        return size <= 1e6 * self.megabytes and seconds <= 60.0 * self.minutes


@dataclass(frozen=True, eq=False)
class QuizPlan:
    """Quiz that is ready for compilation.

    Attributes
    ----------
    source, search, seed
        Items and texts, initial state of the search, and its seed.
    answers
        Number of answers after which a path ends.
    cost
        Maximum numbers of pairs and results, and expected processor time.
    seconds
        Expected time with ``jobs`` processes.
    size
        Maximum size of the tree in bytes, without pictures.
    jobs
        Number of processes.
    notes
        Notes about settings of the study that have no effect.
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
    """Plan a quiz; raise `InvalidParameter` if a setting prevents it, or if it exceeds the limits.

    Parameters
    ----------
    source
        Study and items.
    answers
        Number of answers; None for the study's.
    seed
        Seed of the search; None for the study's, or else 0.
    jobs
        Number of processes.
    limits
        Maximum size and time.
    """
    limits = QuizLimits() if limits is None else limits
    notes = tuple(check_settings(source.configuration))
    check_media(source.items)
    answers = whole(source.configuration.answers if answers is None else answers, "the number of answers")
    seed = (source.configuration.seed or 0) if seed is None else whole(seed, "the seed", 0)
    search = source.search(seed)
    items_of(search)
    probe = CostProbe(search, answers)

    def expected_cost(depth: int) -> tuple[int, float]:
        return tree_size(source.items, depth), probe.cost(depth).expected_time(jobs)

    size, seconds = expected_cost(answers)
    if not limits.allow(size, seconds):
        largest = next((depth for depth in range(answers - 1, 0, -1) if limits.allow(*expected_cost(depth))), None)
        advice = "no number of answers fits" if largest is None else f"at most {largest} answers fit"
        raise InvalidParameter(
            f"{answers} answers need {2**answers - 1:,} pairs and {2**answers:,} results: about {size / 1e6:,.1f} MB "
            f"and {duration_text(seconds)} with {jobs} processes, but the limits are {limits.megabytes:g} MB and "
            f"{limits.minutes:g} min; {advice}, or raise --megabytes and --minutes",
            field="answers",
        )
    return QuizPlan(source, search, seed, answers, probe.cost(answers), seconds, size, jobs, notes)


def tree_size(items: Items, answers: int) -> int:
    """Return an upper bound on the size of a quiz's tree in bytes."""
    shown: int = min(items.n, (2 + RECOMMENDATION_COUNT) * 2**answers)
    texts = [items.ids, items.labels, *(items.data[name] for name in MEDIA if name in items.data)]
    text_size = sum(len(str(value).encode()) + _PUNCTUATION_SIZE for column in texts for value in column)
    return (
        _FIXED_SIZE
        + text_size * shown // items.n
        + encoded_size(items.n, items.d, answers, min(RECOMMENDATION_COUNT, items.n))
    )


def duration_text(seconds: float) -> str:
    """Format a time in seconds, minutes or hours."""
    if seconds < 100:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:,.0f} h"

"""Stop rules, and forecasts of how many answers they need."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Protocol

from pairseek.core.limits import Limit
from pairseek.core.text import plural
from pairseek.core.validation import is_number, whole
from pairseek.errors import InvalidParameter

# Smallest gain, in logits, for which the number of answers until it is reached can be predicted.
_MIN_PREDICTABLE_GAIN = 0.2


class Progress(Protocol):
    """The facts about a search that stop rules read."""

    @property
    def answers(self) -> int:
        """Return the number of answers to queries, ties included."""
        ...

    def radius(self, level: float) -> float:
        """Return the credible radius."""
        ...

    def information(self) -> float:
        """Return the expected bits of the next answer, as if no query were pending; 0 if no pair is left."""
        ...

    def best_probability(self) -> float:
        """Return the probability that the item recommended first is the best."""
        ...

    def gain(self, size: int) -> float:
        """Return the expected gain of a list of this size from one more comparison, in logits."""
        ...

    def gains(self, size: int) -> Iterator[float]:
        """Yield the gain now, and the smallest gain expected within 1, 2, ... further answers."""
        ...

    def path(self, level: float = 0.95) -> Iterator[tuple[float, float]] | None:
        """Yield the expected (credible radius, bits of the next answer) after 0, 1, 2, ... further answers.

        None if they cannot be predicted.
        """
        ...


class StopRule(Protocol):
    """A condition that ends a search."""

    @property
    def name(self) -> str:
        """Return the name used in files, commands and HTTP."""
        ...

    def reached(self, progress: Progress) -> str | None:
        """Return the reason to stop in words, or None to continue."""
        ...

    def remaining(self, progress: Progress) -> float | None:
        """Return the expected number of remaining answers; infinity beyond the horizon, None if it is unpredictable."""
        ...


@dataclass(frozen=True)
class AfterAnswers:
    """Stop after a number of answers. Ties count; skips and observations do not.

    Examples
    --------
    >>> import pairseek as ps
    >>> search = ps.Search(ps.datasets.colours(), stop=ps.AfterAnswers(1), rng=7)
    >>> query = search.ask()
    >>> search.tell(query, winner=query.left)
    >>> search.finished
    '1 answer was given'
    """

    count: Annotated[int, Limit(1, 1000)]
    name: ClassVar[str] = "answers"

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", whole(self.count, "the count of AfterAnswers", field="count"))

    def reached(self, progress: Progress) -> str | None:
        """Return the reason once enough answers were given."""
        given = progress.answers
        return f"{plural(given, 'answer')} {'was' if given == 1 else 'were'} given" if given >= self.count else None

    def remaining(self, progress: Progress) -> int:
        """Return the number of answers still to be given."""
        return max(0, self.count - progress.answers)


@dataclass(frozen=True)
class RadiusBelow:
    """Stop when the credible radius falls below a value.

    Examples
    --------
    >>> import pairseek as ps
    >>> search = ps.Search(ps.datasets.colours(), stop=ps.RadiusBelow(0.2), rng=7)
    >>> search.finished is None
    True
    """

    radius: Annotated[float, Limit(0, 1e12)]
    level: Annotated[float, Limit(0, 1)] = 0.95
    name: ClassVar[str] = "radius"

    def __post_init__(self) -> None:
        if not (is_number(self.radius) and math.isfinite(self.radius) and self.radius > 0):
            raise InvalidParameter(f"RadiusBelow({self.radius!r}): give a radius above 0", field="radius")
        if not (is_number(self.level) and 0 < self.level < 1):
            raise InvalidParameter(f"RadiusBelow(level={self.level!r}): give a share between 0 and 1", field="level")

    def reached(self, progress: Progress) -> str | None:
        """Return the reason once the radius is small enough."""
        now = progress.radius(self.level)
        return f"the {self.level:.0%} radius is {now:.3g}, below {self.radius:g}" if now < self.radius else None

    def remaining(self, progress: Progress) -> float | None:
        """Return the number of answers after which the expected radius is small enough."""
        path = progress.path(self.level)
        return None if path is None else _first(radius < self.radius for radius, _ in path)


@dataclass(frozen=True)
class InformationBelow:
    """Stop when the next answer is expected to provide less than this many bits of information.

    With residual utilities, only bits about the user point count.

    Examples
    --------
    >>> import pairseek as ps
    >>> search = ps.Search(ps.datasets.colours(), stop=ps.InformationBelow(0.05), rng=7)
    >>> search.finished is None
    True
    """

    bits: Annotated[float, Limit(0, 1)]
    name: ClassVar[str] = "information"

    def __post_init__(self) -> None:
        if not (is_number(self.bits) and 0 < self.bits < 1):
            raise InvalidParameter(
                f"InformationBelow({self.bits!r}): give a number of bits between 0 and 1, the range of an answer",
                field="bits",
            )

    def reached(self, progress: Progress) -> str | None:
        """Return the reason once the next answer is expected to be too uninformative."""
        bits = progress.information()
        return f"the next answer would tell {bits:.3g} bits, below {self.bits:g}" if bits < self.bits else None

    def remaining(self, progress: Progress) -> float | None:
        """Return the number of answers after which the next one is expected to be too uninformative."""
        path = progress.path()
        return None if path is None else _first(bits < self.bits for _, bits in path)


@dataclass(frozen=True)
class BestItemFound:
    """Stop when the first recommended item is the best of all with this probability.

    The rule compares it with the probability of ``search.recommend(1)[0]``.

    Examples
    --------
    >>> import pairseek as ps
    >>> stop = (ps.BestItemFound(0.9), ps.AfterAnswers(30))
    >>> search = ps.Search(ps.datasets.colours(), stop=stop, rng=7)
    >>> search.finished is None
    True
    """

    probability: Annotated[float, Limit(0, 1)] = 0.9
    name: ClassVar[str] = "best_item"

    def __post_init__(self) -> None:
        if not (is_number(self.probability) and 0 < self.probability < 1):
            raise InvalidParameter(
                f"BestItemFound({self.probability!r}): give a probability between 0 and 1", field="probability"
            )

    def reached(self, progress: Progress) -> str | None:
        """Return the reason once the first recommended item is the best with the required probability."""
        now = progress.best_probability()
        return f"one item is the best with probability {now:.2f}" if now >= self.probability else None

    def remaining(self, progress: Progress) -> int | None:
        """Return 0 once the item is found, otherwise None.

        A forecast would mislead: the number of answers ranges from ten to hundreds, depending on whether the user point
        is near the border between two items, which becomes clear only at the end.
        """
        return 0 if progress.best_probability() >= self.probability else None


@dataclass(frozen=True)
class GainBelow:
    """Stop when one more comparison is expected to improve the recommended items by too little.

    The gain of an exchange is how much the list would improve on average if the difference between an item on it and
    another item became known. The best exchange counts: see `pairseek.search.gains`. Choose a gain that is worth the
    effort of an answer.

    Parameters
    ----------
    gain
        Expected gain in logits. An item that is better by 0.2 logits is preferred in 55 % of choices.
    size
        Number of items on the list; 1 for a single pick.

    Examples
    --------
    >>> import pairseek as ps
    >>> search = ps.Search(ps.datasets.colours(), goal="best", stop=ps.GainBelow(0.2), rng=7)
    >>> search.finished is None
    True
    """

    gain: Annotated[float, Limit(0, 20)] = 0.2
    size: Annotated[int, Limit(1, 100)] = 1
    name: ClassVar[str] = "gain"

    def __post_init__(self) -> None:
        if not (is_number(self.gain) and math.isfinite(self.gain) and self.gain > 0):
            raise InvalidParameter(f"GainBelow({self.gain!r}): give a number of logits above 0", field="gain")
        object.__setattr__(self, "size", whole(self.size, "the size of GainBelow", field="size"))

    def reached(self, progress: Progress) -> str | None:
        """Return the reason once the gain is small enough."""
        now = progress.gain(self.size)
        what = "the pick" if self.size == 1 else f"the best {self.size} items"
        return f"one more comparison would improve {what} by {now:.2g} logits" if now < self.gain else None

    def remaining(self, progress: Progress) -> float | None:
        """Return the number of answers after which the expected gain is small enough; None for a gain below 0.2.

        Below 0.2 the gain falls so slowly that a small error in it is a large error in the number of answers.
        """
        if self.gain < _MIN_PREDICTABLE_GAIN:
            return None
        return _first(gain < self.gain for gain in progress.gains(self.size))


def _first(reached: Iterable[bool]) -> float:
    return next((count for count, met in enumerate(reached) if met), math.inf)


STOP_RULES: dict[str, type[StopRule]] = {
    rule.name: rule
    for rule in (
        AfterAnswers,
        RadiusBelow,
        InformationBelow,
        BestItemFound,
        GainBelow,
    )
}

"""Replay of one person with one method: the loop of questions and answers, and checks of returned values."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from pairseek.core.types import FloatArray, IntArray
from pairseek.errors import PairseekError
from pairseek.experiments.comparison.person import Person
from pairseek.experiments.comparison.protocol import Method

Watch: TypeAlias = "Callable[[str, int], AbstractContextManager[object]]"
"""Function that makes the context for a call, from the name of the call and the number of answers so far."""


class MethodFault(PairseekError):
    """A method raised, took too long, or returned what the protocol does not permit.

    Attributes
    ----------
    kind
        ``"raises"``, ``"hangs"``, ``"dies"``, ``"not a number"``, ``"no probability"`` or ``"not allowed"``.
    step
        Number of answers that the method had received.
    """

    def __init__(self, kind: str, step: int, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.step = step


@dataclass(frozen=True)
class Moment:
    """The state of a replay after a number of answers.

    Attributes
    ----------
    answers
        Number of answers.
    shown
        Rows of the items of all questions, with repetitions.
    seconds
        Processor time of asking and telling so far.
    """

    answers: int
    shown: tuple[int, ...]
    seconds: float


def without_watch(name: str, step: int) -> AbstractContextManager[object]:  # noqa: ARG001
    """Return a context that does nothing."""
    return nullcontext()


def play(
    method: Method, person: Person, counts: Sequence[int], *, key: Sequence[int], ties: bool = False, watch: Watch
) -> Iterator[Moment]:
    """Ask and tell up to the largest count for which the person has pairs; yield at each of the counts.

    Parameters
    ----------
    method
        A method, after `begin` with the person's items.
    person
        The recorded pairs.
    counts
        Numbers of answers, in increasing order.
    key
        Seed for the order of the allowed pairs.
    ties
        Whether pairs without a winner are answered with a tie rather than by a coin.
    watch
        See `Watch`.
    """
    askable = person.askable
    decided = len(askable) - len(person.tied) if ties else len(askable)
    # Sort the rows of each pair, so that the method cannot see which item won.
    winners = {_sorted_pair(pair): pair[0] for pair in askable[:decided].tolist()}
    winners |= dict.fromkeys((_sorted_pair(pair) for pair in askable[decided:].tolist()), None)
    allowed = list(winners)
    allowed = [allowed[row] for row in np.random.default_rng(list(key)).permutation(len(allowed))]
    shown: list[int] = []
    seconds, started = 0.0, time.process_time()
    for answers in range(max(counts) + 1):
        if answers > len(askable):
            return
        if answers:
            step = answers - 1
            with _convert_faults(watch, "ask", step):
                asked = method.ask(np.array(allowed, dtype=np.int64))
            pair = checked_pair(asked, allowed, step)
            with _convert_faults(watch, "tell", step):
                method.tell(pair, winners[_sorted_pair(pair)])
            allowed.remove(_sorted_pair(pair))
            shown += _sorted_pair(pair)
        if answers in counts:
            seconds += time.process_time() - started
            yield Moment(answers, tuple(shown), seconds)
            # Time between two moments is asking and telling; the caller's time does not count.
            started = time.process_time()


@contextmanager
def _convert_faults(watch: Watch, name: str, step: int) -> Iterator[None]:
    """Convert any exception of a call to a `MethodFault` that names the call."""
    with watch(name, step):
        try:
            yield
        except MethodFault:
            raise
        except Exception as error:  # a method may raise anything
            # The first frame outside of this module is in the method.
            frame = next(f for f in traceback.extract_tb(error.__traceback__) if f.filename != __file__)
            words = f"{type(error).__name__}: {error}".removesuffix(": ")
            message = f"{name} raised {words} ({Path(frame.filename).name}, line {frame.lineno})"
            raise MethodFault("raises", step, message) from error


def begin(method: Method, knowledge: tuple[Sequence[object], FloatArray | None, object], watch: Watch) -> None:
    """Begin with a new person."""
    with _convert_faults(watch, "begin", 0):
        method.begin(*knowledge)  # type: ignore[arg-type]


def checked_predictions(method: Method, pairs: IntArray, step: int, watch: Watch) -> FloatArray:
    """Return the (m,) probabilities of a method, after checking them."""
    with _convert_faults(watch, "predict", step):
        returned = method.predict(pairs.copy())
    try:
        chances = np.asarray(returned, dtype=np.float64)
    except (TypeError, ValueError):
        raise MethodFault("not a number", step, f"predict returned {returned!r}: return an array") from None
    if chances.shape != (len(pairs),):
        raise MethodFault(
            "not a number", step, f"predict returned the shape {chances.shape} for {len(pairs)} pairs: return (m,)"
        )
    if np.isnan(chances).any():
        row = int(np.flatnonzero(np.isnan(chances))[0])
        raise MethodFault("not a number", step, f"predict returned NaN for the pair {pairs[row].tolist()}")
    outside = (chances < 0.0) | (chances > 1.0)
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        raise MethodFault(
            "no probability", step, f"predict returned {chances[row]:.6g} for the pair {pairs[row].tolist()}"
        )
    return chances


def checked_recommendations(method: Method, n: int, step: int, watch: Watch) -> list[int] | None:
    """Return the rows that a method recommends, best first, after checking them; None if predictions decide."""
    with _convert_faults(watch, "recommend", step):
        returned = method.recommend(n)
    if returned is None:
        return None
    rows = [_integer_or_none(row) for row in returned]
    if None in rows or len(set(rows)) < len(rows) or not all(0 <= row < n for row in rows if row is not None):
        raise MethodFault(
            "not allowed", step, f"recommend returned {list(returned)!r}: return different rows below {n}"
        )
    return [row for row in rows if row is not None]


def checked_pair(asked: object, allowed: Sequence[tuple[int, int]], step: int) -> tuple[int, int]:
    """Return the pair that a method asks; raise `MethodFault` if it is not allowed."""
    try:
        rows = [_integer_or_none(row) for row in asked]  # type: ignore[attr-defined]
    except TypeError:
        rows = []
    if len(rows) == 2 and rows[0] is not None and rows[1] is not None:
        pair = (rows[0], rows[1])
        if _sorted_pair(pair) in allowed:
            return pair
    raise MethodFault("not allowed", step, f"ask returned {asked!r}, which is not one of the {len(allowed)} pairs")


def _integer_or_none(value: object) -> int | None:
    """Return a whole number as an int; return None for anything else."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        return None
    return int(value)


def _sorted_pair(pair: Sequence[int]) -> tuple[int, int]:
    first, second = pair
    return (first, second) if first < second else (second, first)

"""What a search is made of, checked before anything is done with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pairseek.candidates import Rest
from pairseek.candidates.continuous import SUPPORTED
from pairseek.errors import InvalidParameter, Unsupported
from pairseek.model.items import Items, Space
from pairseek.model.responses import Response
from pairseek.stopping import AfterAnswers, BestItemFound, StopRule
from pairseek.strategies.base import Procedure, Utility

# For each part, the methods that make one, and an example.
_METHODS: dict[str, tuple[tuple[str, ...], str]] = {
    "prior": (("box", "quadratic", "moments", "sample"), "UniformBox(-1, 1)"),
    "posterior": (("infer",), "EP()"),
    "candidates": (("choose",), "AllPairs()"),
    "stop": (("reached", "remaining"), "AfterAnswers(20)"),
}


def check_parts(**parts: Any) -> None:
    """Refuse parts of the wrong kind; None is a default and always right."""
    for name, part in parts.items():
        if part is None:
            continue
        if isinstance(part, type):
            raise InvalidParameter(f"{name} is the class {part.__name__}: give an instance, {part.__name__}(...)")
        if name == "response":
            _of_kind(name, part, isinstance(part, Response), "Logistic(k=1.5) or Probit()")
        elif name == "rest":
            _of_kind(name, part, isinstance(part, Rest), "Rest(pair=10, item=1)")
        elif name == "strategy":
            if not isinstance(part, Utility | Procedure):
                raise InvalidParameter(
                    f"{part!r} is no strategy: it needs a name and score(), or next() and estimate(); "
                    f"give an instance, such as InfoGain()"
                )
        else:
            methods, example = _METHODS[name]
            _of_kind(name, part, all(callable(getattr(part, method, None)) for method in methods), example)


def _of_kind(name: str, part: object, right: bool, example: str) -> None:  # noqa: FBT001 - private, read at once
    if not right:
        raise InvalidParameter(f"{name} is {part!r}: give an instance, such as {example}")


def check_together(
    items: Items | Space,
    strategy: Utility | Procedure,
    given: dict[str, object],
    rules: Sequence[StopRule],
) -> None:
    """Refuse parts that have no meaning for these items or this strategy, rather than leave them unused."""
    space = isinstance(items, Space)
    if space and strategy.name not in SUPPORTED:
        raise Unsupported(
            f"the strategy {strategy.name!r} has no meaning in a continuous Space: use one of {', '.join(SUPPORTED)}"
        )
    if space and any(isinstance(rule, BestItemFound) for rule in rules):
        raise Unsupported("a continuous Space has no best item, so BestItemFound is never met: use another stop rule")
    if space or isinstance(strategy, Procedure):
        who = (
            "a continuous Space has no list of pairs" if space else f"the strategy {strategy.name!r} chooses by itself"
        )
        for name, part in given.items():
            # A default that is spelled out asks for nothing.
            if part is not None and part != Rest():
                raise Unsupported(f"{name}={part!r} would do nothing, because {who}: leave it out")


def infers_reliability(posterior: object) -> bool:
    """Whether a posterior can infer k and lapse."""
    return bool(getattr(posterior, "infers_reliability", False))


def check_inference(response: Response, posterior: Any, d: int) -> None:
    """Refuse a response that the posterior cannot infer, or more dimensions than it takes."""
    most = getattr(posterior, "most_dimensions", d)
    if d > most:
        raise InvalidParameter(
            f"a {type(posterior).__name__} has at most {most} dimensions and the items have {d}: "
            f"use EP() or Particles()"
        )
    if infers_reliability(posterior):
        return
    kind = type(posterior).__name__
    if response.unknown:
        raise Unsupported(
            f"{kind} cannot infer k or a lapse, and the response is {response!r}: use Particles(), or give numbers"
        )
    if response.share > 0.0 and not getattr(posterior, "takes_lapses", False):
        raise Unsupported(
            f"{kind} needs a log-concave posterior, which lapse={response.share:g} does not give: use Particles(), "
            f"or lapse=0"
        )


def rules_of(stop: StopRule | Sequence[StopRule] | int | None) -> tuple[StopRule, ...]:
    """The stop rules, whichever way they were given."""
    if stop is None:
        return ()
    if isinstance(stop, int | np.integer) and not isinstance(stop, bool):
        return (AfterAnswers(int(stop)),)
    rules: tuple[Any, ...] = tuple(stop) if isinstance(stop, Sequence) and not isinstance(stop, str) else (stop,)
    for rule in rules:
        if rule is None:
            raise InvalidParameter(f"stop is {stop!r}: give rules, such as AfterAnswers(20)")
        check_parts(stop=rule)
    return rules

"""Data-quality indicators of a session: consistency, attention, side bias and speed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pairseek.core.types import JSON
from pairseek.web.pages.contexts.study import Quality
from pairseek.web.sessions.playing import was_played
from pairseek.web.sessions.state import EffectiveAnswer
from pairseek.web.studies.configuration import StudyConfiguration

FAST_MS = 300
"""Response times below this, in milliseconds, are implausibly fast."""
NOTES = frozenset({"unloaded", "unheard"})
"""Flags about the study's sounds and videos, which do not leave anyone out of the ranking."""
NO_ANSWERS: Quality = {
    "consistency": None, "attention": None, "left_share": None, "fast_share": None, "median_ms": None, "flags": []
}  # fmt: skip
"""Indicators of a session without an answer."""
# Minimum number of answers for a flag.
_MIN_ANSWERS = 8


def quality_indicators(
    configuration: StudyConfiguration,
    done: Sequence[EffectiveAnswer],
    checks: Sequence[EffectiveAnswer] = (),
    manner: str | None = None,
) -> Quality:
    """Return quality indicators: shares from 0 to 1, None where undefined, and ``flags`` for suspicious values.

    Parameters
    ----------
    configuration
        Configuration of the study.
    done
        Effective answers.
    checks
        First answer to each attention pair.
    manner
        Inferred word for how the person answers, if any.
    """
    by_name = {answer.query.name: answer for answer in done}
    decided = [answer for answer in done if answer.winner is not None]
    repeated = [
        (answer, by_name.get(str(answer.query.details.get("repeats"))))
        for answer in decided
        if answer.query.kind == "repeated"
    ]
    alike = [
        answer.winner == first.winner for answer, first in repeated if first is not None and first.winner is not None
    ]
    passed = [answer.passed for answer in checks]
    times = [answer.event.rt_ms for answer in done if answer.event.rt_ms is not None and answer.outcome != "skip"]
    consistency, attention = _share(alike), _share(passed)
    left = _share([answer.outcome == "left" for answer in decided])
    fast = _share([ms < FAST_MS for ms in times])
    allowed = 0 if configuration.attention is None else configuration.attention.allowed
    flags = []
    if passed and passed.count(False) > allowed:
        flags.append("attention")
    if len(alike) >= 3 and consistency is not None and consistency <= 0.5:
        flags.append("inconsistent")
    # Two-sided test of side bias at the 0.1 % level.
    if left is not None and len(decided) >= _MIN_ANSWERS and abs(left - 0.5) > 3.29 * 0.5 / np.sqrt(len(decided)):
        flags.append("one_sided")
    if fast is not None and len(times) >= _MIN_ANSWERS and fast > 0.2:
        flags.append("fast")
    if manner == "random" and len(decided) >= _MIN_ANSWERS:
        flags.append("random")
    if any(answer.has_failed for answer in done):
        flags.append("unloaded")
    if configuration.play and any(answer.outcome != "skip" and not was_played(answer.event.played) for answer in done):
        flags.append("unheard")
    return {
        "consistency": consistency,
        "attention": attention,
        "left_share": left,
        "fast_share": fast,
        "median_ms": float(np.median(times)) if times else None,
        "flags": flags,
    }


def manner_of(estimates: Sequence[JSON]) -> str | None:
    """Return the word for how a person answers, if it was inferred."""
    reliability = estimates[-1].get("reliability") if estimates else None
    return None if reliability is None else str(reliability["word"])


def _share(values: Sequence[bool | None]) -> float | None:
    return sum(map(bool, values)) / len(values) if values else None

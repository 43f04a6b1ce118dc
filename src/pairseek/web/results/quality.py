"""Data-quality indicators of a session: consistency, attention, side bias and speed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pairseek.core.types import JSON
from pairseek.web.pages.contexts.study import Quality
from pairseek.web.sessions.playing import was_heard
from pairseek.web.sessions.state import EffectiveAnswer
from pairseek.web.studies.configuration import StudyConfiguration

FAST_MS = 300
"""Reaction times below this, in milliseconds, are implausibly fast."""
NOTES = frozenset({"unloaded", "unheard"})
"""Flags that tell of the study's sounds and videos and leave nobody out of the ranking."""
NO_ANSWERS: Quality = {
    "consistency": None, "attention": None, "left_share": None, "fast_share": None, "median_ms": None, "flags": []
}  # fmt: skip
"""Indicators of a session without an answer."""
# Minimum number of answers for a flag.
_LEAST = 8


def quality_indicators(
    configuration: StudyConfiguration,
    done: Sequence[EffectiveAnswer],
    checks: Sequence[EffectiveAnswer] = (),
    manner: str | None = None,
) -> Quality:
    """Return shares from 0 to 1, None where undefined, and ``flags`` that name conspicuous ones.

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
    first = {one.query.name: one for one in done}
    decided = [one for one in done if one.winner is not None]
    twice = [(one, first.get(str(one.query.details.get("repeats")))) for one in decided if one.query.kind == "repeated"]
    alike = [one.winner == before.winner for one, before in twice if before is not None and before.winner is not None]
    passed = [one.passed for one in checks]
    times = [one.event.rt_ms for one in done if one.event.rt_ms is not None and one.outcome != "skip"]
    consistency, attention = _share(alike), _share(passed)
    left = _share([one.outcome == "left" for one in decided])
    fast = _share([ms < FAST_MS for ms in times])
    allowed = 0 if configuration.attention is None else configuration.attention.allowed
    flags = []
    if passed and passed.count(False) > allowed:
        flags.append("attention")
    if len(alike) >= 3 and consistency is not None and consistency <= 0.5:
        flags.append("inconsistent")
    # Two-sided test of side bias at the 0.1 % level.
    if left is not None and len(decided) >= _LEAST and abs(left - 0.5) > 3.29 * 0.5 / np.sqrt(len(decided)):
        flags.append("one_sided")
    if fast is not None and len(times) >= _LEAST and fast > 0.2:
        flags.append("fast")
    if manner == "random" and len(decided) >= _LEAST:
        flags.append("random")
    if any(one.has_failed for one in done):
        flags.append("unloaded")
    if configuration.play and any(one.outcome != "skip" and not was_heard(one.event.played) for one in done):
        flags.append("unheard")
    return {
        "consistency": consistency,
        "attention": attention,
        "left_share": left,
        "fast_share": fast,
        "median_ms": float(np.median(times)) if times else None,
        "flags": flags,
    }


def manner_of(along: Sequence[JSON]) -> str | None:
    """Return the word that describes how a person answers, if it was inferred."""
    found = along[-1].get("reliability") if along else None
    return None if found is None else str(found["word"])


def _share(values: Sequence[bool | None]) -> float | None:
    return sum(map(bool, values)) / len(values) if values else None

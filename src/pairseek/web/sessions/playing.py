"""Playback of a pair's sounds and videos before an answer.

The client reports what was played, truthfully or not. The report is stored with the answer, and a choice is refused if
the report says that something was not played.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from pairseek.store.events import AskedPair
from pairseek.web.errors import Problem
from pairseek.web.studies.catalogue import Study

PlaybackSide: TypeAlias = Literal["left", "right", "anchor"]
Played: TypeAlias = Literal["yes", "no", "failed"]
"""Whether a sound or video was played as long as the study requires; failed: it could not be loaded."""
UNKNOWN_PLAYBACK = "unknown"
"""State stored for clients that do not report playback."""


def playback_of(study: Study, query: AskedPair, sent: Mapping[PlaybackSide, Played] | None) -> dict[str, str] | None:
    """Return the playback to store with an answer, by side; None if no item has a player."""
    items: dict[PlaybackSide, str | None] = {
        "left": query.left,
        "right": query.right,
        "anchor": query.details.get("anchor"),
    }
    sides = [side for side, item in items.items() if item is not None and study.has_player(item)]
    if not sides:
        return None
    return {side: UNKNOWN_PLAYBACK if sent is None else sent.get(side, "no") for side in sides}


def check_played(study: Study, outcome: str, played: Mapping[str, str] | None) -> None:
    """Raise a `Problem` for a choice made before everything was played."""
    missing = [side for side, state in (played or {}).items() if state in ("no", "failed")]
    if missing and outcome != "skip" and study.configuration.play:
        raise Problem(
            422,
            "not_played",
            "a choice counts only after all sounds and videos of the pair were played",
            received={side: (played or {})[side] for side in missing},
            hint="Play them, or skip the pair if one cannot be loaded.",
        )


def has_failed(played: Mapping[str, str] | None) -> bool:
    """Return whether a sound or video of the pair could not be loaded."""
    return "failed" in (played or {}).values()


def was_played(played: Mapping[str, str] | None) -> bool:
    """Return whether all sounds and videos were played; also true for answers about items without players."""
    return all(state == "yes" for state in (played or {}).values())

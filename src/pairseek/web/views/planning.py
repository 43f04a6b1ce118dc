"""View of the expected precision of a ranking, for the form for a new study."""

from __future__ import annotations

from typing import TypedDict

from pairseek.core.messages import Words
from pairseek.people.ranking.precision import RankingPrecision


class PlanText(TypedDict):
    """Sentence about what a study will tell, and a warning, which may be empty."""

    text: str
    warning: str


def plan_text(precision: RankingPrecision, catalogue: Words) -> PlanText:
    """Return what a study of this size is expected to tell."""
    text = catalogue.say(
        "plan.bound" if precision.is_bound else "plan.text",
        items=precision.items,
        people=precision.people,
        answers=precision.answers,
        ranks=round(precision.ranks),
        percent=max(1, round(100 * precision.best_found)),
    )
    return {"text": text, "warning": "" if precision.tells_apart else catalogue.say("plan.warning")}

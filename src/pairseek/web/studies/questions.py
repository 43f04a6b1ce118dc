"""A researcher's own questions before or after the pairs, and people's replies to them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from pairseek.core.messages import words
from pairseek.core.types import JSON
from pairseek.errors import InvalidParameter
from pairseek.web.studies.strict import StrictModel

Stage: TypeAlias = Literal["before", "after"]
"""Whether questions come before or after the pairs."""
Reply: TypeAlias = str | float
MAX_QUESTIONS = 10
MAX_REPLY_LENGTH = 2000
"""Largest number of characters of a text reply."""
_NUMBER = re.compile(r"[-+\N{MINUS SIGN}]?[0-9]{1,15}([.,][0-9]{1,15})?")

_Option = Annotated[str, Field(min_length=1, max_length=200)]


class Question(StrictModel):
    """Question of the researcher's own."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,39}$", description="name of its column in exports")
    text: str = Field(min_length=1, max_length=500)
    kind: Literal["choice", "number", "text"] = "choice"
    options: list[_Option] = Field(default=[], max_length=20, description="of a choice")
    low: float | None = Field(default=None, ge=-1e12, le=1e12, description="smallest number")
    high: float | None = Field(default=None, ge=-1e12, le=1e12, description="largest number")
    required: bool = False
    when: Stage = "after"

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        if self.kind == "choice" and not 2 <= len(set(self.options)) == len(self.options):
            raise ValueError(f"the choice {self.name!r} needs at least two different options: list them")
        if self.kind != "choice" and self.options:
            raise ValueError(f"the question {self.name!r} has options, but its kind is {self.kind}: set kind: choice")
        if self.kind != "number" and (self.low is not None or self.high is not None):
            raise ValueError(f"the question {self.name!r} has low or high, but its kind is {self.kind}: remove them")
        if self.low is not None and self.high is not None and self.low >= self.high:
            raise ValueError(f"the question {self.name!r} has low {self.low:g} and high {self.high:g}: exchange them")
        return self

    def read(self, text: str) -> tuple[Reply | None, str | None]:
        """Return the reply in a text, and the key of the message that says what is wrong with it."""
        text = text.strip()
        if not text:
            return None, "questions.required" if self.required else None
        if self.kind == "choice":
            return (text, None) if text in self.options else (None, "questions.choice")
        if self.kind == "text":
            return (text, None) if len(text) <= MAX_REPLY_LENGTH else (None, "questions.long")
        if not _NUMBER.fullmatch(text):
            return None, "questions.number"
        number = float(text.replace(",", ".").replace("\N{MINUS SIGN}", "-"))
        low = -math.inf if self.low is None else self.low
        high = math.inf if self.high is None else self.high
        return (number, None) if low <= number <= high else (None, "questions.range")


def read_replies(questions: Sequence[Question], texts: Mapping[str, str]) -> tuple[dict[str, Reply], dict[str, str]]:
    """Return the replies in the fields of a form, and what is wrong with the others: a message key by question."""
    replies: dict[str, Reply] = {}
    wrong: dict[str, str] = {}
    for question in questions:
        reply, problem = question.read(texts.get(question.name, ""))
        if problem is not None:
            wrong[question.name] = problem
        elif reply is not None:
            replies[question.name] = reply
    return replies, wrong


def checked_replies(questions: Sequence[Question], stage: Stage, received: Mapping[str, Reply]) -> dict[str, Reply]:
    """Return the replies that a program sends; raise an `InvalidParameter` that names the first wrong one."""
    asked = {question.name: question for question in questions if question.when == stage}
    for name in received:
        if name not in asked:
            known = ", ".join(asked) or "none"
            raise InvalidParameter(
                f"the study has no question {name[:50]!r} {stage} the pairs: its questions there are {known}",
                field=f"replies.{name}",
            )
    texts = {name: reply if isinstance(reply, str) else f"{reply:.15f}" for name, reply in received.items()}
    replies, wrong = read_replies(list(asked.values()), texts)
    for name, problem in wrong.items():
        expected = words().say(problem, count=MAX_REPLY_LENGTH, low=asked[name].low, high=asked[name].high)
        raise InvalidParameter(
            f"the reply to {name!r} is {received.get(name)!r}: {expected[:1].lower()}{expected[1:]}",
            field=f"replies.{name}",
        )
    return replies


def pending_stage(questions: Sequence[Question], replies: JSON | None, *, finished: bool) -> Stage | None:
    """Return the stage whose questions a person has not been asked yet; None if the pairs or the result come next."""
    stage: Stage = "after" if finished else "before"
    is_pending = stage not in (replies or {}) and any(question.when == stage for question in questions)
    return stage if is_pending else None


def replies_by_question(replies: JSON | None) -> dict[str, Reply]:
    """Return the replies of a session, from both stages, by the name of the question."""
    return {name: reply for stage in (replies or {}).values() for name, reply in stage.items()}

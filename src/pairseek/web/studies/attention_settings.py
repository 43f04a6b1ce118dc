"""Settings of attention pairs."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from pairseek.web.studies.strict import StrictModel


class KnownPair(StrictModel):
    """Pair with a known answer; in a similarity study it also has an anchor."""

    left: str
    right: str
    answer: str
    anchor: str | None = None

    @model_validator(mode="after")
    def _check_answer(self) -> Self:
        if self.left == self.right or self.answer not in (self.left, self.right):
            raise ValueError(
                f"the answer {self.answer!r} is not one of two different items: give the id of left or right"
            )
        return self


class AttentionItem(StrictModel):
    """Item that only attention pairs show."""

    id: str = Field(min_length=1, max_length=200)
    label: str = Field(max_length=2000)
    media: dict[str, Annotated[str, Field(max_length=20_000)]] = Field(
        default={}, max_length=20, description="its text, colour, picture and so on"
    )


class Attention(StrictModel):
    """Attention pairs, and how often they are asked: once in ``every`` pairs."""

    pairs: list[KnownPair] = Field(min_length=1, max_length=100)
    every: int = Field(default=10, ge=2, le=1000)
    allowed: int = Field(default=0, ge=0, description="number of wrong answers that is tolerated")
    apart: bool = Field(default=False, description="whether their items are shown in these pairs only, and not ranked")
    items: list[AttentionItem] = Field(default=[], max_length=300, description="items that are not in the list")

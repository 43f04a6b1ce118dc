"""Base of the settings of a study."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class StrictModel(BaseModel):
    """Immutable settings without unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)

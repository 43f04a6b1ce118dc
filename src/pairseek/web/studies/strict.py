"""Base of the settings of a study, and the check of new texts in them."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict

from pairseek.core.validation import obstacle_to_storing
from pairseek.errors import InvalidParameter


class StrictModel(BaseModel):
    """Immutable settings without unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def check_texts_storable(settings: object) -> None:
    """Raise an `InvalidParameter` if a text in new settings has NUL or a lone surrogate.

    Settings that earlier versions stored are not checked, so that their studies continue.
    """
    # A list of what is left to check, because settings may be nested more deeply than calls can be.
    remaining: list[tuple[str, object]] = [("", settings)]
    while remaining:
        path, value = remaining.pop()
        if isinstance(value, str):
            obstacle = obstacle_to_storing(value, None)
            if obstacle is not None:
                raise InvalidParameter(f"the setting {path!r} cannot be used: {obstacle}; change it", field=path)
        elif isinstance(value, Mapping):
            for name, member in value.items():
                remaining += [(f"{path}.{name}" if path else str(name), member), (path or "name", str(name))]
        elif isinstance(value, list | tuple):
            remaining += [(path, element) for element in value]

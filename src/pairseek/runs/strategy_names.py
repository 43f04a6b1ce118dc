"""Names and records of strategies: pairseek's own, and those of other modules as ``module:Class``."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from pairseek import registry
from pairseek.core.types import JSON
from pairseek.errors import InvalidParameter
from pairseek.strategies import STRATEGIES
from pairseek.strategies.base import Procedure, Utility


def default_label(strategy: Utility | Procedure) -> str:
    """Return the label as the paper writes it: InfoGain, GaussCloud-4, ActRank-3."""
    number = getattr(strategy, "stages", getattr(strategy, "votes", None))
    name = type(strategy).__name__
    return name if number is None else f"{name}-{number}"


def strategy_record(strategy: Utility | Procedure) -> JSON:
    """Return name and parameters as plain data."""
    record = {key: value for key, value in registry.encode(strategy).items() if value is not None}
    kind = type(strategy)
    if STRATEGIES.get(strategy.name) is not kind:
        record["name"] = f"{kind.__module__}:{kind.__qualname__}"
    return record


def strategy_from(record: Mapping[str, Any], queries: int) -> Utility | Procedure:
    """Build the strategy of a record; ``queries`` is the number of answers for strategies that need it."""
    name = str(record.get("name"))
    if ":" in name:
        parameters = {key: value for key, value in record.items() if key != "name"}
        return _imported(name)(**parameters)  # type: ignore[no-any-return]
    if name == "gausscloud":
        record = {"answers": queries, **record}
    strategy: Utility | Procedure = registry.decode("strategy", record)
    return strategy


def _imported(name: str) -> Any:
    module, _, attribute = name.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidParameter(
            f"the strategy {name!r} cannot be imported ({error}): give module:Class of an importable module"
        ) from None

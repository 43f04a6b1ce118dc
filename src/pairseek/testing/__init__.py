"""Contract tests for strategies, posteriors, sources of candidates and stores, for use with pytest.

A contract is a class of tests with one fixture to override. A subclass runs all of its tests against the object that
the fixture returns:

    from pairseek.testing import PosteriorContract

    class TestMyPosterior(PosteriorContract):
        @pytest.fixture
        def posterior(self):
            return MyPosterior()

`StoreContract` requires the extra ``pairseek[web]`` and is imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

# Registered before the imports, so that a failed assertion shows its values as in a test file.
pytest.register_assert_rewrite(
    "pairseek.testing.posteriors", "pairseek.testing.strategies", "pairseek.testing.sources", "pairseek.testing.stores"
)

from pairseek.testing.posteriors import PosteriorContract  # noqa: E402
from pairseek.testing.sources import CandidateSourceContract  # noqa: E402
from pairseek.testing.strategies import StrategyContract  # noqa: E402

if TYPE_CHECKING:
    from pairseek.testing.stores import StoreContract

__all__ = ["CandidateSourceContract", "PosteriorContract", "StoreContract", "StrategyContract"]


def __getattr__(name: str) -> Any:
    if name == "StoreContract":
        from pairseek.testing.stores import StoreContract

        return StoreContract
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

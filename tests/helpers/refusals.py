"""Errors matched by type and field; their wording is asserted once, in the tests of the module that raises them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pairseek.errors import InvalidParameter, PairseekError


@contextmanager
def refused(field: str = "", error: type[PairseekError] = InvalidParameter) -> Iterator[pytest.ExceptionInfo]:
    """Expect an error of this type with this `field`."""
    with pytest.raises(error) as caught:
        yield caught
    assert caught.value.field == field


@contextmanager
def refused_with(code: str, error: type[PairseekError]) -> Iterator[pytest.ExceptionInfo]:
    """Expect an error of the service or of its client with this `code`."""
    with pytest.raises(error) as caught:
        yield caught
    assert caught.value.code == code

"""Errors matched by type and field; their wording is asserted once, in the tests of the module that raises them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from pairseek.errors import InvalidParameter, MissingExtra, PairseekError


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


@contextmanager
def missing_extra(extra: str) -> Iterator[pytest.ExceptionInfo]:
    """Expect an error that says to install this extra."""
    with pytest.raises(MissingExtra, match=rf"pip install 'pairseek\[{extra}\]'") as caught:
        yield caught
    assert caught.value.extra == extra


@contextmanager
def read_only() -> Iterator[None]:
    """Expect numpy's error for writing to a read-only array."""
    with pytest.raises(ValueError, match="read-only"):
        yield

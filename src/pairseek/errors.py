"""Every error that pairseek raises on purpose, in one tree, and its warnings.

::

    PairseekError
    ├── InvalidItems        (ValueError)    the items or the file that holds them
    ├── InvalidTriplets     (ValueError)    judgements of likeness or the file that holds them
    ├── InvalidChoices      (ValueError)    people's choices or ratings, or the file that holds them
    ├── InvalidParameter    (ValueError)    a setting of a model, strategy, rule or search
    ├── InvalidAnswer       (ValueError)    a winner that was not in the query
    ├── InvalidFile         (ValueError)    a saved search that cannot be read
    ├── AnswerConflict      (ValueError)    another answer to a query that has one
    ├── UnknownItem         (LookupError)   an id that no item has
    ├── UnknownQuery        (LookupError)   a query that this search did not ask
    ├── Unsupported         (TypeError)     a combination that has no meaning
    ├── SearchFinished      (RuntimeError)  a stop rule was met: `.reason`
    ├── NoPairLeft          (RuntimeError)  the rules leave nothing to ask: `.rule`
    ├── StoreUnavailable    (OSError)       the database cannot be read or written now
    ├── StoreOutdated       (RuntimeError)  the database has tables of another version
    └── MissingExtra        (ImportError)   an optional dependency is not installed

    ScaleWarning            (UserWarning)   columns of items whose scales differ too much
    AccuracyWarning         (UserWarning)   a posterior that could not be computed exactly

A message says what was wrong, what was received, and what to do.
"""

from __future__ import annotations


class PairseekError(Exception):
    """The root: ``except PairseekError`` catches all that pairseek raises on purpose."""


class InvalidItems(PairseekError, ValueError):
    """The items, or the file that holds them, cannot be used."""


class InvalidTriplets(PairseekError, ValueError):
    """The triplets, or the file that holds them, cannot be used."""


class InvalidChoices(PairseekError, ValueError):
    """People's choices, rankings or ratings, or the file that holds them, cannot be used."""


class InvalidParameter(PairseekError, ValueError):
    """A setting is out of range or of the wrong kind."""


class InvalidAnswer(PairseekError, ValueError):
    """The winner is not one of the two that were shown."""


class InvalidFile(PairseekError, ValueError):
    """A saved search is cut off, edited, of another version, or something else."""


class AnswerConflict(PairseekError, ValueError):
    """The query has another answer already."""


class UnknownItem(PairseekError, LookupError):
    """No item has this id."""


class UnknownQuery(PairseekError, LookupError):
    """The search did not ask this query, or took it back."""


class Unsupported(PairseekError, TypeError):
    """The parts do not fit together."""


class SearchFinished(PairseekError, RuntimeError):
    """A stop rule was met; ``reason`` says which."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the search has finished: {reason}; read `estimate()`, or undo to go on")
        self.reason = reason


class NoPairLeft(PairseekError, RuntimeError):
    """The rules leave no pair to ask; ``rule`` names the one that took the last."""

    def __init__(self, message: str, *, rule: str) -> None:
        super().__init__(message)
        self.rule = rule


class StoreUnavailable(PairseekError, OSError):
    """The database cannot be read or written now."""


class StoreOutdated(PairseekError, RuntimeError):
    """The database has tables of another version."""


class MissingExtra(PairseekError, ImportError):
    """An optional dependency is needed and not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs the extra {extra!r}: pip install 'pairseek[{extra}]'")
        self.extra = extra


class ScaleWarning(UserWarning):
    """Columns of coordinates differ so much in scale that only the widest influence distances."""


class AccuracyWarning(UserWarning):
    """A posterior could not be computed as exactly as it should be."""

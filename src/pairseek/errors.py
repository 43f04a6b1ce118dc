"""The hierarchy of exceptions that pairseek raises, and its warnings.

    PairseekError
    ├── InvalidItems        (ValueError)    invalid items, or their file
    ├── InvalidTriplets     (ValueError)    invalid similarity judgements, or their file
    ├── InvalidChoices      (ValueError)    invalid choices, rankings or ratings, or their file
    ├── InvalidParameter    (ValueError)    invalid setting of a model, strategy, rule or search: `.field`
    ├── InvalidAnswer       (ValueError)    winner that is not in the query
    ├── InvalidFile         (ValueError)    saved search that cannot be read
    ├── InvalidToken        (ValueError)    token that was changed or cut, or of another key or model version
    │   └── ExpiredToken                    token whose time is over
    ├── CatalogueMismatch      (ValueError)    token or saved search about another catalogue
    ├── AnswerConflict      (ValueError)    different answer to an answered query
    ├── UnknownItem         (LookupError)   id that no item has
    ├── UnknownQuery        (LookupError)   query that this search did not ask
    ├── Unsupported         (TypeError)     unsupported combination of parts
    ├── SearchFinished      (RuntimeError)  stop rule met: `.reason`
    ├── NoPairLeft          (RuntimeError)  every pair rests: `.rule`
    ├── StoreUnavailable    (OSError)       database temporarily unavailable
    ├── StoreOutdated       (RuntimeError)  database schema of another version
    └── MissingExtra        (ImportError)   optional dependency not installed

    ScaleWarning            (UserWarning)   coordinates of very different scales
    DimensionWarning        (UserWarning)   more coordinates than answers can resolve
    DefaultWarning          (UserWarning)   default response that another part changed
    AccuracyWarning         (UserWarning)   posterior of reduced accuracy

A message states what is wrong, what was received, and what to do.
"""

from __future__ import annotations


class PairseekError(Exception):
    """Base class: ``except PairseekError`` catches every exception that pairseek defines.

    Attributes
    ----------
    field
        The argument or setting that is invalid, as a dotted path such as ``strategy.penalty``; empty where no single
        one is known.

    Examples
    --------
    >>> import pairseek as ps
    >>> try:
    ...     ps.EPMV(penalty=-1)
    ... except ps.PairseekError as error:
    ...     print(type(error).__name__, error.field)
    InvalidParameter penalty
    """

    field: str = ""


class InvalidItems(PairseekError, ValueError):
    """The items, or their file, are invalid."""

    field = "items"


class InvalidTriplets(PairseekError, ValueError):
    """The triplets, or their file, are invalid."""


class InvalidChoices(PairseekError, ValueError):
    """The choices, rankings or ratings, or their file, are invalid.

    Where choices make no ranking of a group, ``reason`` names why, for programs that say it in other words, and
    ``count`` is the number in the message.
    """

    def __init__(self, message: str = "", *, reason: str = "", count: int = 0) -> None:
        super().__init__(message)
        self.reason = reason
        self.count = count


class InvalidParameter(PairseekError, ValueError):
    """A setting is out of range or has the wrong type; ``field`` is its path where it is known."""

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.field = field

    def within(self, part: str) -> None:
        """Prepend the name of the part that has the setting to the path."""
        self.field = f"{part}.{self.field}" if self.field else part


class InvalidAnswer(PairseekError, ValueError):
    """The winner is not one of the two sides of the query."""


class InvalidFile(PairseekError, ValueError):
    """A saved search is truncated, edited, of another version, or not a saved search."""


class InvalidToken(PairseekError, ValueError):
    """A token was changed, cut off, signed with another key, or made under another version of the model."""


class ExpiredToken(InvalidToken):
    """The time of a token is over."""


class CatalogueMismatch(PairseekError, ValueError):
    """A token or a saved search is about another catalogue, or another configuration, than the one given."""


OtherCatalogue = CatalogueMismatch
"""The name until version 0.2."""


class AnswerConflict(PairseekError, ValueError):
    """The query already has a different answer."""


class UnknownItem(PairseekError, LookupError):
    """No item has this id."""


class UnknownQuery(PairseekError, LookupError):
    """The search did not ask this query, or it was undone."""


class Unsupported(PairseekError, TypeError):
    """The combination of parts is not supported."""


class SearchFinished(PairseekError, RuntimeError):
    """A stop rule was met; ``reason`` describes it."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the search has finished: {reason}; read `estimate()`, or undo to continue")
        self.reason = reason


class NoPairLeft(PairseekError, RuntimeError):
    """The rules of rest permit no pair; ``rule`` describes the last rule tried."""

    def __init__(self, message: str, *, rule: str) -> None:
        super().__init__(message)
        self.rule = rule


class StoreUnavailable(PairseekError, OSError):
    """The database is temporarily unavailable.

    Attributes
    ----------
    summary
        What failed, without the message of the driver, which may contain addresses.
    """

    def __init__(self, summary: str, detail: str = "") -> None:
        cause = f" ({detail})" if detail else ""
        super().__init__(f"{summary}{cause}: acknowledged answers are stored; fix it and try again")
        self.summary = summary


class StoreOutdated(PairseekError, RuntimeError):
    """The database schema has another version."""


class MissingExtra(PairseekError, ImportError):
    """A required optional dependency is not installed."""

    def __init__(self, what: str, extra: str, otherwise: str = "") -> None:
        super().__init__(f"{what} needs the extra {extra!r}: pip install 'pairseek[{extra}]'{otherwise}")
        self.extra = extra


class ScaleWarning(UserWarning):
    """Coordinates have such different scales that only the widest influence distances.

    Examples
    --------
    >>> import pairseek as ps
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     # Price in euros, acidity
    ...     items = ps.Items([[150.0, 0.1], [300.0, 0.9], [550.0, 0.4]])
    >>> caught[0].category.__name__, items.standardized().scale_note
    ('ScaleWarning', None)
    """


class DimensionWarning(UserWarning):
    """Items have more coordinates than a few answers can resolve.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> import pairseek as ps
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     items = ps.Items(np.random.default_rng(0).normal(size=(300, 100)))
    >>> caught[0].category.__name__
    'DimensionWarning'
    """


class DefaultWarning(UserWarning):
    """The default response is not the usual one, because the given posterior or prior does not allow that one.

    Examples
    --------
    >>> import warnings
    >>> import pairseek as ps
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     search = ps.Search([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], posterior=ps.Grid())
    >>> caught[0].category.__name__
    'DefaultWarning'
    """


class AccuracyWarning(UserWarning):
    """A posterior was computed with reduced accuracy."""

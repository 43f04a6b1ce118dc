"""Exceptions and warnings that pairseek raises.

    PairseekError
    ├── InvalidItems        (ValueError)    invalid items, or their file
    ├── InvalidTriplets     (ValueError)    invalid similarity judgements, or their file
    ├── InvalidChoices      (ValueError)    invalid choices, rankings or ratings, or their file
    ├── InvalidParameter    (ValueError)    invalid setting of a model, strategy, rule or search: `.field`
    ├── InvalidAnswer       (ValueError)    winner that is not a side of the query
    ├── InvalidFile         (ValueError)    unreadable or damaged file, such as a saved search
    ├── InvalidToken        (ValueError)    token altered, cut off, of another key, or of a later model version
    │   └── ExpiredToken                    token past its expiry
    ├── CatalogueMismatch   (ValueError)    token or saved search for another catalogue
    ├── AnswerConflict      (ValueError)    second, different answer to a query
    ├── UnknownItem         (LookupError)   item id that does not exist
    ├── UnknownQuery        (LookupError)   query that this search did not ask
    ├── Unsupported         (TypeError)     unsupported combination of parts
    ├── SearchFinished      (RuntimeError)  stop rule met: `.reason`
    ├── NoPairLeft          (RuntimeError)  every pair is resting: `.rule`
    ├── StoreUnavailable    (OSError)       database temporarily unavailable
    ├── StoreOutdated       (RuntimeError)  database tables of another version
    └── MissingExtra        (ImportError)   optional dependency not installed

    ScaleWarning            (UserWarning)   coordinates on very different scales
    DimensionWarning        (UserWarning)   more coordinates than answers can resolve
    DefaultWarning          (UserWarning)   default response replaced because of another part
    AccuracyWarning         (UserWarning)   posterior with reduced accuracy

A message states what is wrong, what was received, and what to do.
"""

from __future__ import annotations


class PairseekError(Exception):
    """Base class: ``except PairseekError`` catches every exception that pairseek defines.

    Attributes
    ----------
    field
        Dotted path of the invalid argument or setting, such as ``strategy.penalty``; empty if no single one is invalid.

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

    If the choices of a group do not determine a ranking, ``reason`` is a code from which programs can make their own
    message, and ``count`` is the number in the message.
    """

    def __init__(self, message: str = "", *, reason: str = "", count: int = 0) -> None:
        super().__init__(message)
        self.reason = reason
        self.count = count


class InvalidParameter(PairseekError, ValueError):
    """A setting is out of range or has the wrong type; ``field`` is its path if known."""

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.field = field

    def within(self, part: str) -> None:
        """Prepend the name of the part that owns the setting to the path."""
        self.field = f"{part}.{self.field}" if self.field else part


class InvalidAnswer(PairseekError, ValueError):
    """The winner is not one of the two sides of the query."""


class InvalidFile(PairseekError, ValueError):
    """A file is missing, damaged, of another version or not of the expected kind, such as a saved search."""


class InvalidToken(PairseekError, ValueError):
    """A token was altered, cut off, signed with another key, or issued under another version of the model."""


class ExpiredToken(InvalidToken):
    """A token is past its expiry."""


class CatalogueMismatch(PairseekError, ValueError):
    """A token or saved search belongs to another catalogue or configuration than the one given."""


OtherCatalogue = CatalogueMismatch
"""Alias of `CatalogueMismatch`, its name in version 0.2."""


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
    """Every pair is resting; ``rule`` describes the last rest rule tried."""

    def __init__(self, message: str, *, rule: str) -> None:
        super().__init__(message)
        self.rule = rule


class StoreUnavailable(PairseekError, OSError):
    """The database is temporarily unavailable.

    Attributes
    ----------
    summary
        What failed, without the driver's message, which may contain addresses.
    """

    def __init__(self, summary: str, detail: str = "") -> None:
        cause = f" ({detail})" if detail else ""
        super().__init__(f"{summary}{cause}: fix it and try again; acknowledged answers are stored")
        self.summary = summary


class StoreOutdated(PairseekError, RuntimeError):
    """The tables of the database have another version."""


class MissingExtra(PairseekError, ImportError):
    """A required optional dependency is not installed."""

    def __init__(self, feature: str, extra: str, alternative: str = "") -> None:
        super().__init__(f"{feature} needs the extra {extra!r}: pip install 'pairseek[{extra}]'{alternative}")
        self.extra = extra


class ScaleWarning(UserWarning):
    """Coordinates are on such different scales that only the widest ones affect distances.

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
    """Items have more coordinates than the answers of a search can resolve.

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
    """The response differs from the requested or the usual one.

    Either the given posterior or prior does not support the usual default, or a saved search has an unknown residual.

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

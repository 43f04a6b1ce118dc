"""Study configuration: the validated settings of a study file."""

from __future__ import annotations

import json
import re
import unicodedata
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails

from pairseek.core.csv import is_table
from pairseek.core.limits import Limit, Size, check_limits, limits_of
from pairseek.core.media import MEDIA, medium_of
from pairseek.core.text import plural
from pairseek.core.types import JSON
from pairseek.core.validation import suggestion
from pairseek.embed.active import SHARE as APART
from pairseek.embed.active import check_count
from pairseek.errors import InvalidItems, InvalidParameter, MissingExtra
from pairseek.model.item_records import items_from
from pairseek.model.items import Items
from pairseek.model.responses import Response
from pairseek.model.unknowns import Unknown
from pairseek.pairs.sources import Rest
from pairseek.people.population import Population
from pairseek.search import serialization
from pairseek.search.configuration import SearchConfiguration
from pairseek.search.defaults import TIE_WIDTH, default_response
from pairseek.search.goals import Goal
from pairseek.search.stopping import StopRule
from pairseek.web.pages import languages
from pairseek.web.studies.names import named_items

SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
# Host and port of a completion URL, without a user, placeholders or backslashes.
_HOST = re.compile(r"[\w.-]+(:[0-9]{1,5})?|\[[0-9a-fA-F:.]+\](:[0-9]{1,5})?")
MOST_ITEMS = 200_000
FEWEST_ITEMS = 4
"""Minimum number of items without coordinates."""
# The time per question grows with the cube of the number of dimensions, the time per result with the number of
# coordinates.
MOST_DIMENSIONS = 100
MOST_COORDINATES = 1_000_000
MOST_TEXT = 20_000
MOST_YAML = 300_000
_MOST_DEPTH, _MOST_VALUES, _MOST_KEYS, _MOST_DIGITS = 20, 20_000, 1000, 400
# YAML numbers, including hexadecimal and base 60.
_NUMBER = re.compile(r"[-+]?\.?[0-9][0-9a-fA-FxXoO_:.+-]*")


# Settings of the search, which similarity studies do not have.
_PREFERENCE_SETTINGS = (
    "strategy",
    "response",
    "prior",
    "posterior",
    "candidates",
    "rest",
    "stop",
    "standardize",
    "scaled",
    "askable",
    "coordinates",
)


def _named(value: object) -> object:
    return {"name": value} if isinstance(value, str) else value


Part = Annotated[dict[str, Any], BeforeValidator(_named)]
Share = Annotated[float, Field(ge=0, le=0.5)]
Text = Annotated[str, Field(max_length=MOST_TEXT)]
Code = Annotated[str, Field(max_length=100, pattern=r"^[\w.-]*$")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Offer(_Strict):
    """Actions offered in addition to choosing an item."""

    tie: bool = False
    skip: bool = False
    undo: bool = True


class KnownPair(_Strict):
    """Pair with a known answer, and in a similarity study with an anchor."""

    left: str
    right: str
    answer: str
    anchor: str | None = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.left == self.right or self.answer not in (self.left, self.right):
            raise ValueError(
                f"the answer {self.answer!r} is not one of two different items: give the id of left or right"
            )
        return self


class Attention(_Strict):
    """Attention pairs: one in every ``every`` pairs."""

    pairs: list[KnownPair] = Field(min_length=1, max_length=100)
    every: int = Field(default=10, ge=2, le=1000)
    allowed: int = Field(default=0, ge=0, description="number of wrong answers that is tolerated")


class PracticePair(_Strict):
    """Practice pair; its answer is not stored. In a similarity study it has an anchor."""

    left: str
    right: str
    anchor: str | None = None


class Resume(_Strict):
    """Policy for returning participants: resume, restart or block."""

    policy: Literal["resume", "restart", "block"] = "resume"
    hours: float = Field(default=72.0, gt=0, le=24 * 366)
    by_id: Literal["never", "unfinished", "always"] = Field(
        default="never",
        description="whether an unsigned id is enough to resume a session in another browser",
    )


class Retention(_Strict):
    """Number of days for which participants' data are kept after the end of a session or the closing of the study."""

    days: int = Field(ge=1, le=3660)
    after: Literal["session", "close"] = "session"


class Codes(_Strict):
    """Completion codes."""

    finished: Code | None = None
    failed_attention: Code | None = None
    no_consent: Code | None = None


class Completion(_Strict):
    """Completion URL and codes; ``{code}`` and ``{participant}`` in the URL are replaced."""

    address: str | None = Field(default=None, max_length=1000)
    codes: Codes = Codes()
    wait: int | None = Field(
        default=20,
        ge=0,
        le=600,
        description="seconds until the result page redirects there; 0: immediately, null: never",
    )

    @field_validator("address")
    @classmethod
    def _is_web(cls, address: str | None) -> str | None:
        if address is None:
            return None
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("it is not a valid URL; give one that begins with https://")
        if not _HOST.fullmatch(parts.netloc):
            raise ValueError(
                "its host must be a plain name, so that nobody is sent elsewhere: write {code} and {participant} only "
                "after the first / or ?"
            )
        return address


class StudyConfiguration(_Strict):
    """Settings of a study, except its items."""

    kind: Literal["preference", "similarity"] = Field(
        default="preference", description="similarity: which of two items is more like a third one?"
    )
    title: str = Field(min_length=1, max_length=200)
    slug: str | None = Field(default=None, description="name in the link; derived from the title if not given")
    language: str = Field(default="en", pattern=r"^[a-z]{2}(-[A-Z]{2})?$")
    question: str | None = Field(default=None, max_length=300, description="above each pair")
    instructions: Text = ""
    consent: Text | None = None
    debrief: Text = ""
    goal: Goal = Field(
        default="taste",
        description="what the search is for: to learn a person's taste, to find the best item, or to find a list of "
        "good items; it decides the strategy, the stop rule and the result page where they are not given",
    )
    strategy: Part | None = None
    response: Part | None = None
    prior: Part | None = None
    posterior: Part | None = None
    candidates: Part | None = None
    rest: dict[str, Any] = {}
    standardize: bool = Field(
        default=False, description="centre each coordinate and divide it by its standard deviation"
    )
    scaled: bool = Field(default=False, description="centre and scale the items by the paper's rule")
    dimensions: int | None = Field(
        default=None, ge=1, le=4, description="of the map of a similarity study; null: by cross-validation"
    )
    coordinates: list[str] | None = Field(
        default=None,
        max_length=MOST_DIMENSIONS,
        description="columns of the items that are coordinates, all others being data; null: all columns of numbers, "
        "an empty list: none",
    )
    askable: Annotated[int, Field(ge=2)] | Annotated[list[str], Field(min_length=2, max_length=MOST_ITEMS)] | None = (
        Field(default=None, description="items to ask about: their ids, or how many, chosen for spread; null: all")
    )
    answers: int | None = Field(
        default=20, ge=1, le=1000, description="number of answers; with stop rules, the maximum"
    )
    stop: list[Part] | None = Field(
        default=None, max_length=4, description="stop rules; null: that of the goal, an empty list: none"
    )
    offer: Offer = Offer()
    play: Annotated[Literal["end"] | float, Limit(0, 3600)] = Field(
        default="end",
        description="how much of each sound and video people play before they choose: end, or seconds; 0: nothing",
    )
    practice: PracticePair | bool = Field(
        default=False, description="a pair of items, or true for the built-in practice pair"
    )
    repeated: Share = 0.0
    random: Share = 0.0
    learn: Literal["auto", "off"] | None = Field(
        default=None,
        description="whether the study learns from its own people; by default, if its items have no coordinates",
    )
    attention: Attention | None = None
    resume: Resume = Resume()
    invited: bool = Field(default=False, description="whether only signed links may begin a session")
    completion: Completion = Completion()
    retention: Retention | None = Field(
        default=None, description="how long participants' data are kept; null: until they are deleted"
    )
    result: bool = Field(default=True, description="whether participants see their result")
    seed: int | None = Field(default=None, ge=0, lt=2**63)

    @model_validator(mode="before")
    @classmethod
    def _kept_apart(cls, record: object) -> object:
        # By default, a similarity study measures its error on random triplets.
        if isinstance(record, dict) and record.get("kind") == "similarity":
            return {"random": APART, **record}
        return record

    @model_validator(mode="after")
    def _fits_kind(self) -> Self:
        if not self.is_similarity:
            if self.dimensions is not None:
                raise ValueError("dimensions is a setting for similarity studies: add kind: similarity, or remove it")
            return self
        unused = [name for name in _PREFERENCE_SETTINGS if getattr(self, name)]
        unused += ["goal"] if self.goal != "taste" else []
        if unused:
            raise ValueError(f"a similarity study has no {unused[0]}: remove the setting")
        if self.offer.tie:
            raise ValueError("a similarity study offers no ties: offer skip instead")
        return self

    @model_validator(mode="after")
    def _together(self) -> Self:
        if self.answers is None and not self.stops_early:
            raise ValueError(
                "neither answers nor stop is given, so the study would never end: give at least one of them"
            )
        return self

    @property
    def stops_early(self) -> bool:
        """Whether a session may end before the maximum number of answers, due to its stop rules or its goal."""
        return self.goal != "taste" if self.stop is None else bool(self.stop)

    @field_validator("slug")
    @classmethod
    def _is_slug(cls, slug: str | None) -> str | None:
        if slug is not None and not SLUG.fullmatch(slug):
            raise ValueError("it is not valid in a link; use at most 64 of a-z, 0-9 and hyphens")
        return slug

    @property
    def is_similarity(self) -> bool:
        """Whether people are asked which of two items is more like a third."""
        return self.kind == "similarity"

    def learns(self, items: Items) -> bool:
        """Return whether a study with these items learns from its own people unless its owner switches that off."""
        return not self.is_similarity and (self.learn == "auto" or (self.learn is None and not items.d))

    def named(self) -> str:
        """Return the slug, derived from the title unless given."""
        return self.slug or slug_of(self.title)

    def resolved(self, items: Items, population: Population | None = None) -> SearchConfiguration:
        """Resolve the configuration of a session's search.

        It has no limit on the number of answers: the session counts them, because pairs that the search has not chosen
        count too. A population replaces the response and the prior, but an unknown k or lapse of the response remains
        unknown.
        """
        parts = self._decoded()
        response = parts.get("response")
        if response is not None and response.tie_width > 0.0 and not self.offer.tie:
            raise InvalidParameter(
                f"response.tie_width is {response.tie_width:g}, but the study offers no ties: set offer.tie to true or "
                f"leave the width out",
                field="response.tie_width",
            )
        if population is not None:
            parts["prior"] = None
            parts["response"] = _population_response(response, population, ties=self.offer.tie)
        elif self.offer.tie:
            given = response or default_response(items, parts.get("prior"), parts.get("posterior"))
            parts["response"] = replace(given, tie_width=given.tie_width or TIE_WIDTH)
        parts |= {"rest": self._rest(), "stop": self._stop(), "goal": self.goal}
        return SearchConfiguration.resolved(items, population=population, askable=self._askable(items), **parts)

    def _askable(self, items: Items) -> list[str] | int | None:
        if self.askable is not None and not items.d:
            raise InvalidParameter(
                "askable is given, but the items have no coordinates: without them only items that people were asked "
                "about can be recommended; leave askable out",
                field="askable",
            )
        return self.askable

    def check_limits(self, items: Items) -> None:
        """Raise an `InvalidParameter` if a setting exceeds the limit that its part declares for studies."""
        parts = self._decoded()
        response = parts.get("response")
        size = Size(items.n, items.d, unknown=response is not None and response.unknown)
        for kind, part in [*parts.items(), ("rest", self._rest()), *(("stop", rule) for rule in self._stop() or ())]:
            check_limits(part, kind, size)

    def _decoded(self) -> dict[str, Any]:
        return {
            kind: serialization.decode(kind, value)
            for kind in ("strategy", "response", "prior", "posterior", "candidates")
            if (value := getattr(self, kind)) is not None
        }

    def _stop(self) -> list[StopRule] | None:
        return None if self.stop is None else [serialization.decode("stop", rule) for rule in self.stop]

    def _rest(self) -> Rest:
        rest = serialization.decode("rest", {"name": "rest", **self.rest})
        assert isinstance(rest, Rest)
        return rest


def _population_response(response: Response | None, population: Population, *, ties: bool) -> Response:
    """Return the response of a population's typical person, with the unknowns of the given response."""
    width = (0.0 if response is None else response.tie_width) or population.tie_width or TIE_WIDTH
    typical = replace(population.response, tie_width=width if ties else 0.0)
    if response is None or response.is_log_concave:
        return typical
    prior = response.k_prior
    # The given median does not apply, because it has the unit of another noise kind.
    k = typical.k if prior is None else Unknown(replace(prior, median=None))
    return replace(typical, k=k, lapse=response.lapse, reliability=response.reliability)


def configured(record: object) -> StudyConfiguration:
    """Validate plain data as a configuration; raise an `InvalidParameter` that names the invalid setting."""
    if not isinstance(record, dict):
        raise InvalidParameter(
            f"a study must be a mapping of settings, received {_short(record)}: write title: ... and further settings"
        )
    try:
        return StudyConfiguration(**{str(key): value for key, value in record.items()})
    except ValidationError as error:
        errors = error.errors()[:5]
        raise InvalidParameter("; ".join(map(_in_words, errors)), field=_place(errors[0])) from None


def check(configuration: StudyConfiguration, items: Items) -> None:
    """Check that configuration and items fit together: resolve every part and look up every item."""
    if not items.d and items.n < FEWEST_ITEMS and not configuration.is_similarity:
        raise InvalidItems(
            f"there {'is' if items.n == 1 else 'are'} {plural(items.n, 'item')} without coordinates: a study needs at "
            f"least {FEWEST_ITEMS} of them to learn what people like; add items"
        )
    if not items.d and not configuration.is_similarity and (configuration.standardize or configuration.scaled):
        setting = "standardize" if configuration.standardize else "scaled"
        raise InvalidParameter(
            f"the setting {setting!r} is true, but the items have no coordinates: leave it out", field=setting
        )
    for name, limit in limits_of(StudyConfiguration).items():
        limit.check(getattr(configuration, name), name, Size(items.n, items.d))
    try:
        if configuration.is_similarity:
            check_count(items.n)
            _check_map(configuration, items)
        else:
            configuration.check_limits(items)
            configuration.resolved(items)
    except (TypeError, ArithmeticError, MemoryError, RecursionError) as error:
        # Some setting of a part has the wrong type.
        raise InvalidParameter(f"the parts of the study do not fit together ({error}): check their settings") from None
    if configuration.language not in languages():
        raise InvalidParameter(
            f"the setting 'language' is {configuration.language!r}: expected one of {', '.join(languages())}",
            field="language",
        )
    ids = set(items.ids)
    for name, where in _named_items(configuration):
        if name not in ids:
            raise InvalidParameter(
                f"{where} names {name!r}, which is not an item of the study: use the id of an item",
                field=where,
            )


def _named_items(configuration: StudyConfiguration) -> Iterator[tuple[str, str]]:
    """Yield each item named in a setting, with the setting; check that pairs have an anchor exactly if needed."""
    attention = [] if configuration.attention is None else configuration.attention.pairs
    practice = [configuration.practice] if isinstance(configuration.practice, PracticePair) else []
    pairs: list[tuple[KnownPair | PracticePair, str]] = [(pair, "attention") for pair in attention]
    pairs += [(pair, "practice") for pair in practice]
    for pair, where in pairs:
        if (pair.anchor is not None) != configuration.is_similarity:
            if configuration.is_similarity:
                problem, advice = "needs an anchor", "add anchor: ID"
            else:
                problem, advice = "has an anchor, which only similarity studies use", "remove it"
            raise InvalidParameter(
                f"the pair {pair.left!r}, {pair.right!r} of {where} {problem}: {advice}",
                field=where,
            )
        if pair.anchor in (pair.left, pair.right):
            raise InvalidParameter(
                f"the anchor {pair.anchor!r} of {where} is one of the pair's two items: use a third item", field=where
            )
        yield from ((name, where) for name in (pair.left, pair.right, pair.anchor) if name is not None)


def _check_map(configuration: StudyConfiguration, items: Items) -> None:
    if configuration.dimensions is not None and items.n < configuration.dimensions + 2:
        raise InvalidParameter(
            f"dimensions is {configuration.dimensions}, but the study has only {items.n} items: use at most "
            f"{items.n - 2}",
            field="dimensions",
        )


def read_yaml(text: str) -> Any:
    """Parse YAML to plain data; raise an `InvalidParameter` with the line of a syntax error."""
    if len(text) > MOST_YAML:
        raise InvalidParameter(
            f"the study's file has more than {MOST_YAML:,} characters: keep only settings in it, not items"
        )
    try:
        _check_yaml(yaml.parse(text, Loader=yaml.SafeLoader))
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or "not YAML"
        raise InvalidParameter(f"the study's file cannot be read{where}: {problem}; fix it there") from None
    except (RecursionError, ValueError, ArithmeticError) as error:
        if isinstance(error, InvalidParameter):
            raise
        raise InvalidParameter(f"the study's file cannot be read: {error}; write plain settings") from None


def _check_yaml(events: Iterable[yaml.Event]) -> None:
    """Reject YAML that takes far longer to read than its length suggests, as soon as its events show it."""
    # Number of nodes still allowed in each open list or mapping. The time to read YAML grows with the square of the
    # depth and, for keys with equal hashes, with the square of the number of keys.
    rooms = [_MOST_VALUES]
    for number, event in enumerate(events):
        if isinstance(event, yaml.AliasEvent):
            # Nested aliases can expand to more than fits in memory.
            raise _rejection("contains aliases (*name)", event, "write the settings in full")
        if isinstance(event, yaml.NodeEvent):
            rooms[-1] -= 1
        if isinstance(event, yaml.CollectionStartEvent):
            rooms.append(2 * _MOST_KEYS if isinstance(event, yaml.MappingStartEvent) else _MOST_VALUES)
        elif isinstance(event, yaml.CollectionEndEvent):
            rooms.pop()
        if len(rooms) > _MOST_DEPTH:
            raise _rejection(f"nests lists and mappings more than {_MOST_DEPTH} deep", event, "write plain settings")
        if isinstance(event, yaml.ScalarEvent) and len(event.value) > MOST_TEXT:
            raise _rejection(f"has a text of more than {MOST_TEXT:,} characters", event, "shorten it")
        if isinstance(event, yaml.ScalarEvent) and len(event.value) > _MOST_DIGITS and _NUMBER.fullmatch(event.value):
            raise _rejection(f"has a number of more than {_MOST_DIGITS} digits", event, "shorten it")
        if rooms[-1] < 0 or number > 2 * _MOST_VALUES:
            limit = f"{_MOST_VALUES:,} values, or {_MOST_KEYS:,} settings in one mapping"
            raise _rejection(f"has more than {limit}", event, "keep only settings in it, not items")


def _rejection(what: str, event: yaml.Event, advice: str) -> InvalidParameter:
    mark = event.start_mark
    return InvalidParameter(f"the study's file {what}, line {1 if mark is None else mark.line + 1}: {advice}")


def read_items(
    path: Path,
    *,
    scaled: bool = False,
    standardize: bool = False,
    coordinates: Sequence[str] | None = None,
    content: bytes | None = None,
    placed: bool = True,
) -> Items:
    """Read items from a file; media columns become data under the name of their medium, and ids become text.

    Without ``coordinates``, all numeric columns are coordinates. Items that are not ``placed``, as in a similarity
    study, have no coordinates; the items of other studies may have none either.

    ``content`` is the content of an uploaded CSV or Parquet file, whose path then only serves as a name in errors.
    Columns of different scale give no warning here: the commands and the study's page show ``items.scale_note``.
    """
    uploaded = content is not None
    # A similarity study learns its map, so numeric columns are data.
    chosen = coordinates if placed or not (uploaded or is_table(path)) else ()
    try:
        items = (
            Items._of_file(path, coordinates=chosen, media=True, content=content, optional=True, as_table=True)
            if uploaded
            else Items._of_file(path, coordinates=chosen, media=True, optional=True)
        )
    except MissingExtra as error:
        raise InvalidItems(f"this installation cannot read Parquet: send CSV, or install it ({error})") from None
    data = {_medium_name(name): values for name, values in items.data.items()}
    ids = [str(name) for name in items.ids]
    if not placed:
        return study_items(Items._unwarned(None, ids, items.labels, None, data, items._columns, least=1), scaled=False)
    positions = items.coordinates if items.d else None
    items = Items._unwarned(positions, ids, items.labels, items.appeal, data, items._columns, least=1)
    return study_items(items, scaled=scaled, standardize=standardize)


def _medium_name(column: str) -> str:
    medium = medium_of(column)
    return column if medium is None else medium.name


def study_items(items: Items, *, scaled: bool, standardize: bool = False) -> Items:
    """Validate the items of a study, then standardize and scale them as requested."""
    if items.n > MOST_ITEMS:
        raise InvalidItems(f"there are {items.n:,} items: a study takes at most {MOST_ITEMS:,}; use fewer")
    if items.d > MOST_DIMENSIONS:
        raise InvalidItems(
            f"the items have {items.d:,} dimensions: a study takes at most {MOST_DIMENSIONS}; reduce them, for example "
            f"to their principal components"
        )
    if items.n * items.d > MOST_COORDINATES:
        raise InvalidItems(
            f"{items.n:,} items in {items.d} dimensions have {items.n * items.d:,} coordinates: a study takes at most "
            f"{MOST_COORDINATES:,}; use fewer items or dimensions"
        )
    for name in ("label", *items.data):
        values = items.labels if name == "label" else items.data[name]
        for row, value in enumerate(values):
            _check_shown(name, str(value), items.ids[row])
    items = named_items(items)
    if not items.d:
        return items
    items = items.standardized() if standardize else items
    return items.scaled() if scaled else items


def _check_shown(name: str, value: str, item: object) -> None:
    if len(value) > MOST_TEXT:
        raise InvalidItems(
            f"column {name!r} of item {item!r} has {len(value):,} characters: shorten it to at most {MOST_TEXT:,}"
        )
    advice = MEDIA[name].advice(value) if value and name in MEDIA else None
    if advice is not None:
        raise InvalidItems(f"the {name} of item {item!r} is {value[:100]!r}: {advice}")


def pack_items(items: Items) -> bytes:
    """Serialize items for the store, including their column names."""
    record = {**items.record(), "columns": items.columns}
    return zlib.compress(json.dumps(record, allow_nan=False).encode(), 6)


def unpack_items(content: bytes) -> Items:
    """Deserialize items from `pack_items`."""
    record = json.loads(zlib.decompress(content))
    columns = record.pop("columns", None)
    items = items_from(record)
    assert isinstance(items, Items)
    coordinates = items.coordinates if items.d else None
    return named_items(Items._unwarned(coordinates, items.ids, items.labels, items.appeal, items.data, columns))


def slug_of(title: str) -> str:
    """Convert a title to a slug."""
    plain = unicodedata.normalize("NFKD", title.lower().replace("ß", "ss")).encode("ascii", "ignore").decode()
    slug = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:60].strip("-")
    return slug or "study"


def schema() -> JSON:
    """Return the JSON schema of a study file."""
    return StudyConfiguration.model_json_schema()


def _place(error: ErrorDetails) -> str:
    """Return the form field of a validation error; all attention pairs share one field."""
    return "attention" if error["loc"][:1] == ("attention",) else ".".join(str(part) for part in error["loc"])


def _in_words(error: ErrorDetails) -> str:
    place = ".".join(str(part) for part in error["loc"])
    kind, received = error["type"], _short(error.get("input"))
    if kind == "extra_forbidden" and place == "space":
        return (
            "a study asks about items, which a continuous space does not have: put points of the space in the rows of "
            "a CSV, with a column that shows each (colour, audio, ...), or search it in Python with Search(Space(...))"
        )
    if kind == "extra_forbidden":
        names = StudyConfiguration.model_fields if len(error["loc"]) == 1 else ()
        near = suggestion(place, names)
        return f"there is no setting {place!r}{near}: fix or remove it; docs/reference/study-settings.md lists all"
    if kind == "missing":
        return f"the setting {place!r} is missing: add it"
    message = str(error["ctx"]["error"] if kind == "value_error" else error["msg"])
    if not place:
        return message
    return f"the setting {place!r} is {received}: {message[0].lower()}{message[1:]}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."

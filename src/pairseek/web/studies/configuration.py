"""Study configuration: the validated settings of a study file."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AwareDatetime, BeforeValidator, Field, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails

from pairseek.core.limits import Limit, Size, check_limits
from pairseek.core.types import JSON
from pairseek.core.validation import suggestion
from pairseek.embed.active import RANDOM_SHARE as SIMILARITY_RANDOM_SHARE
from pairseek.errors import InvalidParameter
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
from pairseek.web.studies.attention_settings import Attention
from pairseek.web.studies.questions import MAX_QUESTIONS, Question
from pairseek.web.studies.strict import StrictModel, check_texts_storable

SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
RESERVED_SLUGS = ("new",)
"""Slugs that no study can have, because researchers' pages use these addresses."""
# Host and port of a completion URL, without a user, placeholders or backslashes.
_HOST_AND_PORT = re.compile(r"[\w.-]+(:[0-9]{1,5})?|\[[0-9a-fA-F:.]+\](:[0-9]{1,5})?")
MAX_ITEMS = 200_000
# The time per question grows with the cube of this number.
MAX_DIMENSIONS = 100
MAX_TEXT_LENGTH = 20_000
MAX_TITLE_LENGTH = 200
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


def _with_name(value: object) -> object:
    """Return the record of a part, which may be given as a name."""
    return {"name": value} if isinstance(value, str) else value


Part = Annotated[dict[str, Any], BeforeValidator(_with_name)]
Share = Annotated[float, Field(ge=0, le=0.5)]
Text = Annotated[str, Field(max_length=MAX_TEXT_LENGTH)]
Code = Annotated[str, Field(max_length=100, pattern=r"^[\w.-]*$")]


class Offer(StrictModel):
    """Actions that people may take besides choosing an item."""

    tie: bool = False
    skip: bool = False
    undo: bool = True


class PracticePair(StrictModel):
    """Practice pair, whose answer is not stored; in a similarity study it has an anchor."""

    left: str
    right: str
    anchor: str | None = None


class Resume(StrictModel):
    """Policy for returning participants: resume, restart or block."""

    policy: Literal["resume", "restart", "block"] = "resume"
    hours: float = Field(default=72.0, gt=0, le=24 * 366)
    by_id: Literal["never", "unfinished", "always"] = Field(
        default="never",
        description="whether an unsigned id is enough to resume a session in another browser",
    )


class Retention(StrictModel):
    """Number of days after the end of a session, or the closing of the study, for which participants' data are kept."""

    days: int = Field(ge=1, le=3660)
    after: Literal["session", "close"] = "session"


class Codes(StrictModel):
    """Completion codes."""

    finished: Code | None = None
    failed_attention: Code | None = None
    no_consent: Code | None = None
    quota_full: Code | None = None


class Completion(StrictModel):
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
    def _check_web_address(cls, address: str | None) -> str | None:
        if address is None:
            return None
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("it is not a valid URL; give one that begins with https://")
        if not _HOST_AND_PORT.fullmatch(parts.netloc):
            raise ValueError(
                "its host must be a plain name, so that nobody is sent elsewhere: write {code} and {participant} only "
                "after the first / or ?"
            )
        return address


class StudyConfiguration(StrictModel):
    """Settings of a study, except its items."""

    kind: Literal["preference", "similarity"] = Field(
        default="preference", description="similarity: which of two items is more like a third one?"
    )
    title: str = Field(min_length=1, max_length=MAX_TITLE_LENGTH)
    slug: str | None = Field(default=None, description="name in the link; derived from the title if not given")
    language: str = Field(default="en", pattern=r"^[a-z]{2}(-[A-Z]{2})?$")
    question: str | None = Field(default=None, max_length=300, description="above each pair")
    texts: dict[str, str | dict[str, str]] = Field(
        default={}, max_length=300, description="other words for texts that participants see, by message key"
    )
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
    rest: dict[str, Any] = Field(default={})
    standardize: bool = Field(
        default=False, description="centre each coordinate and divide it by its standard deviation"
    )
    scaled: bool = Field(default=False, description="centre and scale the items by the paper's rule")
    dimensions: int | None = Field(
        default=None, ge=1, le=4, description="of the map of a similarity study; null: by cross-validation"
    )
    coordinates: list[str] | None = Field(
        default=None,
        max_length=MAX_DIMENSIONS,
        description="columns of the items that are coordinates, all others being data; null: all columns of numbers, "
        "an empty list: none",
    )
    askable: Annotated[int, Field(ge=2)] | Annotated[list[str], Field(min_length=2, max_length=MAX_ITEMS)] | None = (
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
    questions: list[Question] = Field(
        default=[], max_length=MAX_QUESTIONS, description="the researcher's own, before or after the pairs"
    )
    quota: int | None = Field(
        default=None, ge=1, le=1_000_000, description="number of finished sessions at which nobody can begin any more"
    )
    closes: AwareDatetime | None = Field(
        default=None, description="when the study closes, with its offset from UTC: 2027-01-31T18:00+01:00"
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
    names: bool | None = Field(
        default=None, description="whether cards show the names of items; null: the names that somebody wrote"
    )
    accent: str | None = Field(
        default=None,
        pattern=r"^#[0-9a-fA-F]{6}$",
        description="colour of buttons and highlights on participants' pages",
    )
    result: bool = Field(default=True, description="whether participants see their result")
    seed: int | None = Field(default=None, ge=0, lt=2**63)

    @model_validator(mode="before")
    @classmethod
    def _add_random_share(cls, record: object) -> object:
        # By default, a similarity study measures its error on random triplets.
        if isinstance(record, dict) and record.get("kind") == "similarity":
            return {"random": SIMILARITY_RANDOM_SHARE, **record}
        return record

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
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
    def _check_end(self) -> Self:
        if self.answers is None and not self.stops_early:
            raise ValueError(
                "neither answers nor stop is given, so the study would never end: give at least one of them"
            )
        return self

    @property
    def stops_early(self) -> bool:
        """Whether stop rules or the goal can end a session before the maximum number of answers."""
        return self.goal != "taste" if self.stop is None else bool(self.stop)

    @field_validator("questions")
    @classmethod
    def _check_names(cls, questions: list[Question]) -> list[Question]:
        names = [question.name for question in questions]
        if len(set(names)) < len(names):
            raise ValueError("two questions have the same name: give each a name of its own")
        return questions

    @field_validator("slug")
    @classmethod
    def _check_slug(cls, slug: str | None) -> str | None:
        if slug is not None and not SLUG.fullmatch(slug):
            raise ValueError("it is not valid in a link; use at most 64 of a-z, 0-9 and hyphens")
        return slug

    @property
    def is_similarity(self) -> bool:
        """Whether people are asked which of two items is more like a third."""
        return self.kind == "similarity"

    def learns(self, dimensions: int) -> bool:
        """Return whether a study with these items learns from its participants until its owner switches that off."""
        return not self.is_similarity and (self.learn == "auto" or (self.learn is None and not dimensions))

    def slug_or_default(self) -> str:
        """Return the slug, or else one derived from the title."""
        return self.slug or slug_of(self.title)

    def resolved(self, items: Items, population: Population | None = None) -> SearchConfiguration:
        """Resolve the configuration of a session's search.

        The search has no limit on the number of answers: the session counts them, because pairs that the search did not
        choose count as well. A population replaces the response and the prior, but an unknown k or lapse of the
        response remains unknown.
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
            response = response or default_response(items, parts.get("prior"), parts.get("posterior"))
            parts["response"] = replace(response, tie_width=response.tie_width or TIE_WIDTH)
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
    """Return the response of a population's typical person, with the unknowns of the study's response."""
    width = (0.0 if response is None else response.tie_width) or population.tie_width or TIE_WIDTH
    typical = replace(population.response, tie_width=width if ties else 0.0)
    if response is None or response.is_log_concave:
        return typical
    prior = response.k_prior
    # The study's median does not apply, because its unit belongs to another noise kind.
    k = typical.k if prior is None else Unknown(replace(prior, median=None))
    return replace(typical, k=k, lapse=response.lapse, reliability=response.reliability)


def configured(record: object) -> StudyConfiguration:
    """Validate plain data as a configuration; raise an `InvalidParameter` that names the invalid setting."""
    if not isinstance(record, dict):
        raise InvalidParameter(
            f"a study is a mapping of settings, but received {_shortened(record)}: write title: ... and further "
            f"settings"
        )
    check_texts_storable(record)
    try:
        return StudyConfiguration(**{str(key): value for key, value in record.items()})
    except ValidationError as error:
        errors = error.errors()[:5]
        raise InvalidParameter("; ".join(map(_error_message, errors)), field=_form_field(errors[0])) from None


def stored_configuration(record: JSON) -> StudyConfiguration:
    """Return the configuration of a stored study, even if an earlier version wrote it."""
    return configured({**record, "response": serialization.present_form("response", record.get("response"))})


def slug_of(title: str) -> str:
    """Convert a title to a slug that a study can have."""
    plain = unicodedata.normalize("NFKD", title.lower().replace("ß", "ss")).encode("ascii", "ignore").decode()
    slug = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:60].strip("-")
    return f"{slug}-study" if slug in RESERVED_SLUGS else slug or "study"


def schema() -> JSON:
    """Return the JSON schema of a study file."""
    return StudyConfiguration.model_json_schema()


def _form_field(error: ErrorDetails) -> str:
    """Return the form field of a validation error; all attention pairs share one field."""
    return "attention" if error["loc"][:1] == ("attention",) else ".".join(str(part) for part in error["loc"])


def _error_message(error: ErrorDetails) -> str:
    path = ".".join(str(part) for part in error["loc"])
    kind, received = error["type"], _shortened(error.get("input"))
    if kind == "extra_forbidden" and path == "space":
        return (
            "a study asks about items, which a continuous space does not have: put points of the space in the rows of "
            "a CSV, with a column that shows each (colour, audio, ...), or search it in Python with Search(Space(...))"
        )
    if kind == "extra_forbidden":
        names = StudyConfiguration.model_fields if len(error["loc"]) == 1 else ()
        near = suggestion(path, names)
        return f"there is no setting {path!r}{near}: fix or remove it; docs/reference/study-settings.md lists all"
    if kind == "missing":
        return f"the setting {path!r} is missing: add it"
    message = str(error["ctx"]["error"] if kind == "value_error" else error["msg"])
    if not path:
        return message
    # The whole group would not show which of its settings is wrong.
    value = "wrong" if isinstance(error.get("input"), dict) else received
    return f"the setting {path!r} is {value}: {message[0].lower()}{message[1:]}"


def _shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."

"""Findings of a study: whose answers count, group ranking and segments."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from pairseek.core.lazy import cached_property
from pairseek.core.types import FloatArray
from pairseek.errors import InvalidChoices
from pairseek.model.items import Items
from pairseek.people.population import Choices
from pairseek.people.ranking import Ranking, Segmentation
from pairseek.people.ranking.personal import PersonalTastes
from pairseek.people.ranking.ranking import ranking_from_posterior
from pairseek.people.ranking.segments import segmented
from pairseek.people.ranking.utilities import UtilityPosterior, mean_utilities
from pairseek.store.database import Database
from pairseek.web.learning.study_choices import choices_of
from pairseek.web.pages.contexts.study import Quality
from pairseek.web.results.own_groups import QuestionGroups, question_groups
from pairseek.web.results.quality import NOTES, manner_of, quality_indicators
from pairseek.web.sessions.history import SessionHistory, estimate_history, iterate_histories
from pairseek.web.studies.catalogue import Study

# Largest number of people on the map of a group; the newest are shown.
_MAX_POINTS = 400
# Only one calibration runs at a time: a second download of the same findings waits for its result.
_CALIBRATION_LOCK = threading.Lock()


@dataclass(frozen=True, slots=True)
class Participation:
    """Data quality of one person's answers.

    Attributes
    ----------
    session, name
        Id of the session, and the participant's id from the link.
    answers
        Number of answers that count, without attention pairs.
    quality
        Quality indicators, see `pairseek.web.results.quality.quality_indicators`.
    void
        Whether a researcher has voided the session.
    """

    session: str
    name: str | None
    answers: int
    quality: Quality
    void: bool

    @property
    def left_out(self) -> bool:
        """Whether the ranking leaves the person out, because the session is void or has a quality flag."""
        return self.void or not NOTES.issuperset(self.quality["flags"])


@dataclass(frozen=True, eq=False)
class GroupAnswers:
    """Answers of the people of a study.

    Attributes
    ----------
    people
        Everyone who has answered, in order of arrival.
    careful, everyone
        Choices of the people whom the ranking includes, and choices of all sessions that are not void; None if empty.
    simulated
        Whether these people are simulated, because no real person has answered yet.
    first, last
        Times of the first and the last answer.
    points
        Estimates of the newest people in the items' coordinates: mean and covariance by session.
    groups
        People whom the ranking does not leave out, by their answers to the researcher's own questions.
    """

    people: tuple[Participation, ...]
    careful: Choices | None
    everyone: Choices | None
    simulated: bool
    first: str | None = None
    last: str | None = None
    points: Mapping[str, tuple[FloatArray, FloatArray]] = field(default_factory=dict)
    groups: tuple[QuestionGroups, ...] = ()

    def choices(self, *, everyone: bool = False) -> Choices:
        """Return the choices; raise `InvalidChoices` with the reason if there are none."""
        choices = self.everyone if everyone else self.careful
        if choices is not None:
            return choices
        if not self.people:
            raise InvalidChoices(
                "nobody has answered yet: a ranking of a group needs at least three people", reason="nobody"
            )
        if all(person.void for person in self.people):
            raise InvalidChoices(
                "all sessions are void: restore some of them, or collect answers from other people", reason="void"
            )
        raise InvalidChoices(
            "the ranking leaves out everyone who has answered, because of how they answered: see the table of people, "
            "or rank with everyone",
            reason="left_out",
        )


def no_ranking(study: Study) -> InvalidChoices:
    """Return the error for ranking a similarity study."""
    return InvalidChoices(
        f"the study {study.row.slug!r} asks what is alike, not what people like, so it has no ranking: use a "
        f"preference study"
    )


def group_answers(database: Database, study: Study, *, located: bool = False) -> GroupAnswers:
    """Read the answers of a study's people; simulated people count as long as no real person has answered.

    With ``located``, the estimates of the people on the map and the groups by own questions are included.
    """
    if study.configuration.is_similarity:
        raise no_ranking(study)
    histories = [session for session in iterate_histories(database, study) if session.done]
    people = [session for session in histories if session.row.kind == "person"]
    simulated = not people and bool(histories)
    chosen = histories if simulated else people
    participations = tuple(_participation(study, session) for session in chosen)
    kept = [session for session, person in zip(chosen, participations, strict=True) if not person.left_out]
    times = sorted(event.at for session in chosen for event in session.events if event.kind == "answer")
    return GroupAnswers(
        participations,
        choices_of(study, kept),
        choices_of(study, [session for session in chosen if not session.is_void]),
        simulated,
        times[0] if times else None,
        times[-1] if times else None,
        _points(study, chosen) if located else {},
        question_groups(study, kept) if located else (),
    )


def _points(study: Study, histories: list[SessionHistory]) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Return the estimates of the newest people, as stored at the end of the session or else recomputed."""
    out = {}
    for session in histories[-_MAX_POINTS:] if study.items.d else []:
        final = session.row.final
        if final is None or "covariance" not in final or any(answered.void for answered in session.done):
            if not session.parts.is_usable:
                continue
            state = session.state(study, session.done)
            final = {**state.estimate_record(), "covariance": state.covariance}
        out[session.row.id] = np.array(final["mean"]), np.array(final["covariance"])
    return out


def _participation(study: Study, session: SessionHistory) -> Participation:
    done, row = session.done, session.row
    manner = manner_of(estimate_history(study, session))
    quality = quality_indicators(study.configuration, done, session.checks, manner)
    count = sum(answered.is_preference for answered in done)
    return Participation(row.id, row.participant_name, count, quality, session.is_void)


@dataclass(frozen=True, eq=False)
class GroupFindings:
    """Population model of a group, with its ranking and segments, over these items."""

    items: Items
    model: UtilityPosterior
    ranking: Ranking
    segments: Segmentation

    @property
    def tastes(self) -> PersonalTastes:
        """Tastes of the people; calibrated at the first access, which takes longer than the ranking."""
        with _CALIBRATION_LOCK:
            return self._tastes

    @cached_property
    def _tastes(self) -> PersonalTastes:
        return PersonalTastes.of(self.model, self.items)

    @classmethod
    def of(cls, choices: Choices, items: Items) -> GroupFindings:
        """Fit the model to choices; raise `InvalidChoices` if there is nothing to rank."""
        model = mean_utilities(choices, items)
        return cls(items, model, ranking_from_posterior(model, items), segmented(model))


def ranking_of(database: Database, study: Study, *, everyone: bool = False) -> Ranking:
    """Return the group ranking of a study; raise `InvalidChoices` if there is nothing to rank."""
    return findings_of(database, study, everyone=everyone).ranking


def findings_of(database: Database, study: Study, *, everyone: bool = False) -> GroupFindings:
    """Return the findings of a study; raise `InvalidChoices` if there is nothing to rank."""
    return GroupFindings.of(group_answers(database, study).choices(everyone=everyone), study.all_items)


@dataclass(frozen=True, eq=False)
class StudyFindings:
    """Findings of a study at a point in time, once without the people whom the ranking leaves out and once of everyone.

    If there is nothing to rank, the error that says why takes the place of the findings.
    """

    group: GroupAnswers
    careful: GroupFindings | InvalidChoices
    everyone: GroupFindings | InvalidChoices


def study_findings(database: Database, study: Study) -> StudyFindings:
    """Compute the findings of a study."""
    group = group_answers(database, study, located=True)
    careful = _findings_or_error(group, study, everyone=False)
    if any(person.left_out and not person.void for person in group.people):
        return StudyFindings(group, careful, _findings_or_error(group, study, everyone=True))
    return StudyFindings(group, careful, careful)


def _findings_or_error(group: GroupAnswers, study: Study, *, everyone: bool) -> GroupFindings | InvalidChoices:
    try:
        return GroupFindings.of(group.choices(everyone=everyone), study.all_items)
    except InvalidChoices as error:
        return error.with_traceback(None)

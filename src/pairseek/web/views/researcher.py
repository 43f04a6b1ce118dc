"""Views of the researcher's pages."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import get_args

import numpy as np
import yaml

from pairseek.core.media import FILE_COLUMNS, MEDIA
from pairseek.core.messages import DEFAULT
from pairseek.core.types import JSON, Belief, FloatArray
from pairseek.model.items import Items
from pairseek.model.noise import NOISES
from pairseek.model.priors import PRIORS
from pairseek.model.responses import RESPONSES
from pairseek.model.scales import ColumnScale
from pairseek.pairs.strategies import all_strategies
from pairseek.people.learning import next_due
from pairseek.search.goals import Goal
from pairseek.store import learning as stored_learning
from pairseek.store import populations as stored_populations
from pairseek.store import studies
from pairseek.store.counts import Totals, counts, newest_marks, totals
from pairseek.store.database import now, stamp
from pairseek.store.sessions import SessionRow
from pairseek.store.studies import StudyRow
from pairseek.web.access.auth import Account
from pairseek.web.learning import populations
from pairseek.web.pages import languages
from pairseek.web.pages.contexts.account import AuditRow, ConfirmPage
from pairseek.web.pages.contexts.findings import FindingsPage
from pairseek.web.pages.contexts.maps import Dot
from pairseek.web.pages.contexts.study import (
    Column,
    ColumnsContext,
    ColumnsPart,
    LearningContext,
    LiveContext,
    NewStudyPage,
    PersonPage,
    Scales,
    StudiesPage,
    StudyContext,
    StudyPage,
    TextField,
    VersionRow,
)
from pairseek.web.results import tables
from pairseek.web.service import Service
from pairseek.web.sessions import forgetting, history
from pairseek.web.studies.catalogue import Study
from pairseek.web.studies.forms import NEVER, STOPS
from pairseek.web.studies.questions import replies_by_question
from pairseek.web.studies.texts import participant_messages
from pairseek.web.views.account import audit_row, user_context
from pairseek.web.views.findings import findings_context
from pairseek.web.views.item_cards import FIRST_ITEMS, gallery_context
from pairseek.web.views.links import qr_code, recruitment_context
from pairseek.web.views.overview import person_row
from pairseek.web.views.result import dots, project, recommended_items

PEOPLE_PER_PAGE = 50
"""Number of participants per page of the list."""
# Minutes over which the rate of answers is measured.
_RATE_MINUTES = 5
# Number of posterior samples on the map of a participant.
_MAP_SAMPLE_COUNT = 400
# Actions in the audit log that the pages of a study show.
_SHOWN_ACTIONS = (
    "open",
    "close",
    "limits",
    "create_study",
    "simulate",
    "population",
    "map",
    "learning_failed",
    "drop_population",
    "learning_on",
    "learning_off",
    "choose_version",
    "upload_population",
    "add_items",
    "replace_items",
    "change_items",
    "edit",
    "duplicate_study",
    "forget",
    "expire",
    "delete_study",
    "link",
)
# Largest number of items from which the form picks attention pairs.
_MAX_PICKED = 1000
# Largest number of items on a map; more dots would be indistinguishable.
_MAX_DOTS = 4000


def study_context(service: Service, row: StudyRow, items: int) -> StudyContext:
    """Return the context of a study in the list of studies and in the headers of its pages."""
    return _study_context(row, items, service.database.read(lambda connection: totals(connection, row.id)))


def _study_context(row: StudyRow, items: int, by_study: Mapping[int, Totals]) -> StudyContext:
    total = by_study.get(row.id, Totals())
    return {
        "slug": row.slug,
        "title": row.configuration["title"],
        "status": "open" if row.is_open else "closed",
        "items": items,
        "started": total.started,
        "finished": total.finished,
        "answers": total.answers,
        "created": row.created_at,
        "last_answer": total.last_answer,
    }


def studies_page(service: Service, user: Account) -> StudiesPage:
    """Return the context of the list of studies."""
    rows, by_study = service.database.read(lambda connection: (studies.all_studies(connection), totals(connection)))
    contexts = [_study_context(row, row.item_count, by_study) for row in rows]
    return {"user": user_context(user), "studies": contexts}


def live_figures(service: Service, study: Study) -> LiveContext:
    """Return the figures that the dashboard keeps refreshing."""
    since = stamp(datetime.now(UTC) - timedelta(minutes=_RATE_MINUTES))
    study_counts = service.database.read(lambda connection: counts(connection, study.row.id, since))
    return {
        "status": "open" if study.row.is_open else "closed",
        "started": study_counts.started,
        "finished": study_counts.finished,
        "answers": study_counts.answers,
        "answers_per_minute": study_counts.recent / _RATE_MINUTES,
        "median_seconds": float(np.median(study_counts.times)) / 1000 if study_counts.times else None,
        "latency_ms": service.latency.median_ms(),
        "updated": now(),
    }


def study_page(
    service: Service, user: Account, study: Study, link: str, *, simulating: int, page: int, learning: bool = False
) -> StudyPage:
    """Return the context of the dashboard, with one page of participants, newest first."""
    participants = service.overview.participants(study)
    pages = max(1, -(-len(participants) // PEOPLE_PER_PAGE))
    page = min(max(1, page), pages)
    shown = participants[PEOPLE_PER_PAGE * (page - 1) : PEOPLE_PER_PAGE * page]
    return {
        "user": user_context(user),
        "study": study_context(service, study.row, study.items.n),
        "gallery": gallery_context(study, 0, FIRST_ITEMS),
        "link": link,
        "recruitment": recruitment_context(study, link),
        "qr": qr_code(link),
        "live": live_figures(service, study),
        "map": {
            "items": _thinned(dots(study.items)),
            "people": [point for _, point in reversed(participants) if point],
        },
        "people": [row for row, _ in shown],
        "paging": {"page": page, "pages": pages, "first": PEOPLE_PER_PAGE * (page - 1) + 1, "total": len(participants)},
        "audit": _audit(service, study),
        "configuration": yaml.safe_dump(study.row.configuration, sort_keys=False, allow_unicode=True),
        "simulating": simulating,
        "columns": columns_of(study.items),
        "formats": tables.formats(),
        "scales": _scales(study.items),
        "retention": study.row.configuration.get("retention"),
        "learning": learning_context(service, study, requested=learning),
    }


def learning_context(service: Service, study: Study, *, requested: bool) -> LearningContext:
    """Return the versions that a study has learned from its participants, and when it learns next."""
    number = study.row.id
    state, finished, current = service.database.read(
        lambda connection: (
            stored_learning.state(connection, number),
            stored_learning.count_finished(connection, number),
            stored_populations.current(connection, number),
        )
    )
    return {
        "on": populations.learns_automatically(study.configuration, study.items.d, state),
        "requested": requested,
        "finished": finished,
        "due": next_due(state.tried),
        "current": current,
        "failure": state.failure,
        "failed": state.failed_at,
        "versions": [_version_row(row, current) for row in populations.versions(service.database, study)],
        "extensible": not study.items.d,
    }


def _version_row(row: JSON, current: int | None) -> VersionRow:
    facts = row["facts"] or {}
    before, after = ((facts.get(name) or {}).get("accuracy") for name in ("before", "after"))
    measured = (facts.get("after") or {}).get("people", 0)
    pairs, correct = row["random"]
    return {
        "version": row["version"],
        "when": row["created_at"],
        "who": row["created_by"],
        "sessions": facts.get("sessions"),
        "dimension": facts.get("dimension"),
        "given": not facts or facts.get("dimension") is None,
        "before": before,
        "after": after,
        "measured": measured,
        "random": correct / pairs if pairs else None,
        "pairs": pairs,
        "dropped": row["dropped_at"] is not None,
        "current": row["version"] == current,
    }


def findings_page(service: Service, user: Account, study: Study, *, everyone: bool) -> FindingsPage:
    """Return the context of the findings page; the findings are None until the background thread has computed them."""
    newest = service.findings.look(study)
    return {
        "user": user_context(user),
        "study": study_context(service, study.row, study.items.n),
        "findings": None if newest.findings is None else findings_context(study, newest.findings, everyone=everyone),
        "current": newest.is_current,
        "computation": newest.computation,
        "languages": list(languages()),
    }


def person_page(service: Service, user: Account, study: Study, row: SessionRow) -> PersonPage:
    """Return the context of a participant's page, with the items that the session began with."""
    study = study.with_catalogue(row.catalogue)
    session = history.read_history(service.database, study, row)
    done, estimates = session.done, history.estimate_history(study, session)
    estimate = history.latest_estimate(study, session, estimates)
    track = [point for point in estimates if point["radius"] is not None]
    asked, replies = study.configuration.questions, replies_by_question(row.replies)
    state = session.state(study, done) if session.parts.is_usable and not study.configuration.is_similarity else None
    return {
        "user": user_context(user),
        "study": study_context(service, study.row, study.items.n),
        "person": person_row(study, session, estimates),
        "reliability": estimate.get("reliability"),
        "ids": {
            **{name: str(value) for name, value in tables.identity(row).items() if value and name != "simulated"},
            **(row.variables or {}),
            **{question.text: str(replies[question.name]) for question in asked if question.name in replies},
        },
        "map": {
            "items": _thinned(dots(study.items)),
            "samples": [] if state is None else project(study.items, _even_samples(state.search.belief, study.items.d)),
            "track": {
                "points": project(study.items, np.array([point["mean"] for point in track])) if track else [],
                "radii": [point["radius"] for point in track],
            },
        },
        "answers": [
            {
                "index": index,
                "query": answered.query.name,
                "anchor": study.card(answered.query.details["anchor"]) if study.configuration.is_similarity else None,
                "left": study.card(answered.query.left),
                "right": study.card(answered.query.right),
                "outcome": answered.outcome,
                "rt_ms": answered.event.rt_ms,
                "answered": answered.event.at,
                "kind": "search" if answered.query.kind == "strategy" else answered.query.kind,
                "voided": answered.void,
            }
            for index, answered in enumerate(done, 1)
        ],
        "nearest": recommended_items(study, state, row.final),
        "audit": [mark for mark in _audit(service, study) if mark["session"] == row.id],
    }


def columns_of(items: Items) -> ColumnsContext:
    """Return the columns of an item list: coordinates, columns kept as data, and the one that gave the names."""
    texts = [name for name in items.data if name not in (*MEDIA, *FILE_COLUMNS.values())]
    names = next((name for name in texts if items.data[name] == items.labels), None)
    return {"coordinates": list(items.columns), "data": [name for name in texts if name != names], "names": names}


def columns_part(items: Items | None, problem: str | None) -> ColumnsPart:
    """Return the context of the form's section on columns: the columns of the item list, or its problem."""
    if items is None:
        return {"count": 0, "columns": None, "labels": [], "problem": problem}
    labels = list(dict.fromkeys(items.labels))[:_MAX_PICKED]
    return {"count": items.n, "columns": columns_of(items), "labels": labels, "problem": problem}


def new_study_page(
    user: Account, values: Mapping[str, str], errors: Mapping[str, str], *, language: str = DEFAULT
) -> NewStudyPage:
    """Return the context of the form for a new study, which proposes the researcher's language."""
    defaults = {
        "answers": "20",
        "language": language,
        "offer.undo": "true",
        "kind": "preference",
        "repeated": "0",
        "resume.policy": "resume",
        "resume.hours": "72",
        "completion.wait": "20",
    }
    return {
        "user": user_context(user),
        "columns": ["label", *MEDIA],
        "formats": tables.formats(),
        "strategies": list(all_strategies()),
        "goals": list(get_args(Goal)),
        "stops": [NEVER, *STOPS],
        "responses": list(RESPONSES),
        "noises": list(NOISES),
        "priors": list(PRIORS),
        "languages": list(languages()),
        "texts": text_fields(values.get("language", language)),
        "values": dict(values) or defaults,
        "errors": dict(errors),
    }


def text_fields(language: str) -> list[TextField]:
    """Return the fields of the form for the texts of participants, with the usual texts in a language."""
    messages = participant_messages(language if language in languages() else DEFAULT)
    fields: list[TextField] = []
    for key, message in messages.items():
        forms = {"": message} if isinstance(message, str) else {f".{form}": text for form, text in message.items()}
        fields += [{"name": f"texts.{key}{form}", "usual": text} for form, text in forms.items()]
    return fields


def _scales(items: Items) -> Scales | None:
    """Return the widest and the narrowest column if their scales differ too much."""
    contrast = items.scale_contrast
    if contrast is None or not contrast.uneven:
        return None
    return {"widest": _column(contrast.widest), "narrowest": _column(contrast.narrowest)}


def _column(column: ColumnScale) -> Column:
    # The page shows all decimals, so numbers are rounded to four digits.
    low, high, deviation = (float(f"{value:.4g}") for value in (column.low, column.high, column.deviation))
    return {"number": column.index + 1, "low": low, "high": high, "deviation": deviation}


def _audit(service: Service, study: Study) -> list[AuditRow]:
    marks, notes = service.database.read(
        lambda connection: (newest_marks(connection, study.row.id), studies.audit_log_of(connection, study.row.slug))
    )
    rows: list[AuditRow] = [
        {
            "when": str(mark["at"]),
            "who": str(mark["who"]),
            "action": str(mark["action"]),
            "what": f"{str(mark['session_id'])[:8]} {mark['query'] or ''}".strip(),
            "reason": str(mark["reason"]),
            "changes": [],
            "session": str(mark["session_id"]),
            "study": None,
        }
        for mark in marks
    ]
    rows += [audit_row(note) for note in notes if note["action"] in _SHOWN_ACTIONS]
    return sorted(rows, key=lambda row: row["when"], reverse=True)


def confirm_participant(service: Service, user: Account, study: Study, row: SessionRow, *, wrong: bool) -> ConfirmPage:
    """Return the context of the page on which to confirm that a participant is forgotten."""
    address = f"/studies/{study.row.slug}/people/{row.id}"
    return {
        "user": user_context(user),
        "kind": "participant",
        "name": display_name(row),
        "count": len(forgetting.sessions_of_person(service.database, study, person_id(row))),
        "consequences": ["populations", "backups", "undone"],
        "action": f"{address}/forget",
        "back": address,
        "wrong": wrong,
    }


def confirm_study(service: Service, user: Account, study: Study, *, wrong: bool) -> ConfirmPage:
    """Return the context of the page on which to confirm the deletion of a study."""
    address = f"/studies/{study.row.slug}"
    return {
        "user": user_context(user),
        "kind": "study",
        "name": study.row.slug,
        "count": service.database.read(lambda connection: counts(connection, study.row.id)).started,
        "consequences": ["answering", "backups", "undone"],
        "action": f"{address}/delete",
        "back": address,
        "wrong": wrong,
    }


def person_id(row: SessionRow) -> str:
    """Return the id that finds all sessions of a participant; for an anonymous one, the id of the session."""
    return row.participant_name or row.id


def display_name(row: SessionRow) -> str:
    """Return the name of a participant as pages show it."""
    return row.participant_name or row.id[:8]


def _even_samples(belief: Belief, d: int) -> FloatArray:
    """Return (_MAP_SAMPLE_COUNT, d) posterior samples by deterministic systematic resampling."""
    steps = (np.arange(_MAP_SAMPLE_COUNT) + 0.5) / _MAP_SAMPLE_COUNT
    rows = np.minimum(np.searchsorted(np.cumsum(belief.weights), steps), len(belief.weights) - 1)
    return belief.samples[rows, :d]


def _thinned(all_dots: list[Dot]) -> list[Dot]:
    """Return at most `_MAX_DOTS` evenly spaced dots."""
    return all_dots if len(all_dots) <= _MAX_DOTS else all_dots[:: -(-len(all_dots) // _MAX_DOTS)]

"""Views of the participant's pages."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from urllib.parse import quote

from pairseek.core.types import JSON
from pairseek.store.sessions import SessionRow
from pairseek.web.learning.study_choices import appeal_before
from pairseek.web.pages.contexts.participant import (
    ClosedPage,
    DeclinedPage,
    PracticeContext,
    ResultPage,
    RunPage,
    StartPage,
    StudyHead,
)
from pairseek.web.pages.contexts.shared import CardSchema, StateSchema
from pairseek.web.service import Service
from pairseek.web.sessions.history import estimate_history, latest_estimate, read_history
from pairseek.web.sessions.state import EffectiveAnswer
from pairseek.web.studies.cards import safe_html
from pairseek.web.studies.catalogue import Study
from pairseek.web.studies.configuration import PracticePair
from pairseek.web.studies.questions import replies_by_question
from pairseek.web.views.result import session_result


def study_head(study: Study) -> StudyHead:
    """Return the title, colour and logo of a study."""
    accent = study.configuration.accent
    style = None if accent is None else f"/s/{study.row.slug}/face.css?v={accent.removeprefix('#').lower()}"
    return {"slug": study.row.slug, "title": study.configuration.title, "style": style, "logo": study.logo}


def texts_version(study: Study) -> str:
    """Return a hash of the texts that people read before they begin."""
    configuration = study.configuration
    texts = json.dumps([configuration.title, configuration.instructions, configuration.consent])
    return hashlib.sha256(texts.encode()).hexdigest()[:32]


def start_page(study: Study, *, begun: bool, preview: bool, changed: bool = False) -> StartPage:
    """Return the context of the consent and instruction page."""
    configuration = study.configuration
    return {
        "study": study_head(study),
        "consent_html": safe_html(configuration.consent) if configuration.consent else None,
        "instructions_html": safe_html(configuration.instructions) if configuration.instructions else None,
        "answers": configuration.answers if not configuration.stops_early else None,
        "preview": preview,
        "begun": begun,
        "texts": texts_version(study),
        "changed": changed,
    }


def run_page(study: Study, row: SessionRow, state: StateSchema, *, prefetch: bool) -> RunPage:
    """Return the context of the page with the pairs."""
    practice, offer = study.configuration.practice, study.configuration.offer
    practice_pair: PracticeContext | bool | None = None
    if practice and not state["progress"]["answered"]:
        practice_pair = _built_in_practice(study) if study.configuration.is_similarity else True
        if isinstance(practice, PracticePair):
            anchor = None if practice.anchor is None else study.card(practice.anchor)
            practice_pair = {"anchor": anchor, "left": study.card(practice.left), "right": study.card(practice.right)}
    return {
        "study": study_head(study),
        "similarity": study.configuration.is_similarity,
        "session": row.id,
        "question": study.configuration.question,
        "state": state,
        "offers": {"undo": offer.undo, "tie": offer.tie, "skip": offer.skip},
        "practice": practice_pair,
        "play": study.configuration.play if study.has_players else None,
        "prefetch": prefetch,
        "preview": row.kind == "preview",
    }


def _built_in_practice(study: Study) -> PracticeContext:
    """Return the built-in practice question of similarity studies."""
    say = study.words.say

    def card(side: str) -> CardSchema:
        name = say(f"anchor.{side}")
        return {"id": side, "label": name, "name": name, "media": {}}

    return {"anchor": card("anchor"), "left": card("left"), "right": card("right")}


def result_page(service: Service, study: Study, row: SessionRow) -> ResultPage:
    """Return the context of the result page."""
    session = read_history(service.database, study, row)
    is_first, shows_result = session.parts.design is not None, study.configuration.result
    crowd = appeal_before(service.database, study, session) if is_first and shows_result else None
    data = session_result(study, session, crowd) if shows_result else None
    done = session.done
    code = completion_code(study, session.checks)
    return {
        "study": study_head(study),
        "goal": study.configuration.goal,
        "map": None if data is None else data.map,
        "nearest": [] if data is None else data.nearest,
        "learned": [] if data is None else data.learned,
        "first": is_first,
        "before": 0 if crowd is None else crowd.people,
        "answers": sum(answered.outcome != "skip" for answered in done),
        "debrief_html": safe_html(study.configuration.debrief) if study.configuration.debrief else None,
        "mine": f"/s/{study.row.slug}/mine",
        # The completion URL leads back to the panel, so the Prolific id comes first.
        "redirect": completion_url(study, code, row.prolific_pid or row.participant),
        # A preview does not redirect.
        "wait": None if row.kind == "preview" else study.configuration.completion.wait,
        "code": code,
        "preview": row.kind == "preview",
    }


def declined_page(study: Study, identity: Mapping[str, str | None]) -> DeclinedPage:
    """Return the context of the page for people who do not consent."""
    code = study.configuration.completion.codes.no_consent
    who = identity.get("prolific_pid") or identity.get("participant")
    return {"study": study_head(study), "redirect": completion_url(study, code, who) if code else None, "code": code}


def closed_page(study: Study, row: SessionRow | None) -> ClosedPage:
    """Return the context of the page of a closed study."""
    mine = f"/s/{study.row.slug}/mine" if row is not None else None
    return {"study": study_head(study), "mine": mine, "full": False, "redirect": None, "code": None}


def full_page(study: Study, identity: Mapping[str, str | None]) -> ClosedPage:
    """Return the context of the page of a study that has reached its quota."""
    code = study.configuration.completion.codes.quota_full
    who = identity.get("prolific_pid") or identity.get("participant")
    redirect = completion_url(study, code, who) if code else None
    return {"study": study_head(study), "mine": None, "full": True, "redirect": redirect, "code": code}


def completion_code(study: Study, checks: Sequence[EffectiveAnswer]) -> str | None:
    """Return the completion code of a session; ``checks`` are its first answers to attention pairs."""
    codes = study.configuration.completion.codes
    return codes.failed_attention if failed_attention(study, checks) and codes.failed_attention else codes.finished


def failed_attention(study: Study, checks: Sequence[EffectiveAnswer]) -> bool:
    """Return whether a person failed more attention pairs than the study allows."""
    rule = study.configuration.attention
    return rule is not None and sum(not check.passed for check in checks) > rule.allowed


def completion_url(study: Study, code: str | None, who: str | None) -> str | None:
    """Return the completion URL; None if the study has none."""
    address = study.configuration.completion.address
    if address is None:
        return None
    return address.replace("{code}", quote(code or "", safe="")).replace("{participant}", quote(who or "", safe=""))


def own_data(service: Service, row: SessionRow) -> JSON:
    """Return a person's data for download, with the estimate if the study shows results."""
    study = service.catalogue.by_id(row.study_id)
    session = read_history(service.database, study, row)
    estimate_record: JSON = {}
    if study.configuration.result and not study.configuration.is_similarity:
        estimate = latest_estimate(study, session, estimate_history(study, session))
        point = None if estimate["radius"] is None else estimate["mean"]
        estimate_record = {"estimate": point, "radius": estimate["radius"]}
    return {
        "study": {"slug": study.row.slug, "title": study.configuration.title},
        "session": row.id,
        "ids": {
            "participant": row.participant,
            "PROLIFIC_PID": row.prolific_pid,
            "STUDY_ID": row.prolific_study,
            "SESSION_ID": row.prolific_session,
        },
        "variables": row.variables or {},
        "replies": replies_by_question(row.replies),
        "started": row.created_at,
        "answers": [
            {
                "number": answered.query.position + 1,
                **({"anchor": answered.query.details["anchor"]} if study.configuration.is_similarity else {}),
                "left": answered.query.left,
                "right": answered.query.right,
                "outcome": answered.outcome,
                "winner": answered.winner,
                **({} if answered.event.played is None else {"played": answered.event.played}),
                "rt_ms": answered.event.rt_ms,
                "answered_at": answered.event.at,
            }
            for answered in session.done
        ],
        **estimate_record,
    }

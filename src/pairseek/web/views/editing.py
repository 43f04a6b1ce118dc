"""Views of the form with the texts and the appearance of a study."""

from __future__ import annotations

from collections.abc import Mapping

from pairseek.store.counts import counts
from pairseek.web.access.auth import Account
from pairseek.web.pages.contexts.design import EditPage, ShadesContext
from pairseek.web.service import Service
from pairseek.web.studies.catalogue import Study
from pairseek.web.studies.configuration import StudyConfiguration
from pairseek.web.studies.face import shades
from pairseek.web.views.account import user_context
from pairseek.web.views.researcher import study_context

# Accent of `base.css`.
_USUAL_ACCENT = "#0b6b4f"
_NAMES = {True: "true", False: "false", None: ""}


def edit_page(
    service: Service,
    user: Account,
    study: Study,
    values: Mapping[str, str] | None = None,
    errors: Mapping[str, str] | None = None,
) -> EditPage:
    """Return the context of the form, with the study's present settings unless ``values`` were submitted."""
    configuration = study.configuration
    return {
        "user": user_context(user),
        "study": study_context(service, study.row, study.items.n),
        "values": dict(values or _values(configuration)),
        "errors": dict(errors or {}),
        "logo": study.logo,
        "shades": None if configuration.accent is None else _shades(configuration.accent),
        "usual": _USUAL_ACCENT,
        "started": service.database.read(lambda connection: counts(connection, study.row.id)).started,
    }


def _values(configuration: StudyConfiguration) -> dict[str, str]:
    return {
        "title": configuration.title,
        "instructions": configuration.instructions,
        "consent": configuration.consent or "",
        "debrief": configuration.debrief,
        "names": _NAMES[configuration.names],
        "accent": configuration.accent or _USUAL_ACCENT,
        "accent.own": "" if configuration.accent is None else "true",
    }


def _shades(accent: str) -> ShadesContext:
    light, dark = shades(accent)
    return {"light": light.accent, "dark": dark.accent, "adjusted": light.accent != accent.lower()}

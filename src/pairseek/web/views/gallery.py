"""View of the gallery, which has all items of a study."""

from __future__ import annotations

from collections.abc import Mapping

from pairseek.store import unanswered
from pairseek.web.access.auth import Account
from pairseek.web.pages.contexts.design import GalleryPage
from pairseek.web.results import tables
from pairseek.web.service import Service
from pairseek.web.studies.catalogue import Study
from pairseek.web.views.account import user_context
from pairseek.web.views.item_cards import gallery_context
from pairseek.web.views.researcher import study_context

ITEMS_PER_PAGE = 60
"""Number of items on a page of the gallery; each has two fields while the items are edited."""


def gallery_page(
    service: Service,
    user: Account,
    study: Study,
    *,
    page: int,
    editing: bool,
    errors: Mapping[str, str] | None = None,
) -> GalleryPage:
    """Return the context of one page of the gallery."""
    number = study.row.id
    answers, begun = service.database.read(
        lambda c: (unanswered.count_answers(c, number), unanswered.count_begun(c, number))
    )
    pages = max(1, -(-study.items.n // ITEMS_PER_PAGE))
    page = min(max(1, page), pages)
    first = ITEMS_PER_PAGE * (page - 1)
    return {
        "user": user_context(user),
        "study": study_context(service, study.row, study.items.n),
        "gallery": gallery_context(study, first, ITEMS_PER_PAGE),
        "paging": {"page": page, "pages": pages, "first": first + 1, "total": study.items.n},
        "editing": editing and not answers,
        "editable": not answers,
        "begun": begun,
        "additions": study.row.additions,
        "extensible": not study.items.d and not study.configuration.is_similarity,
        "formats": tables.formats(),
        "errors": dict(errors or {}),
    }

"""Views of the findings of a study: group ranking, segments, map of the group and how people answered."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import cast

import numpy as np

from pairseek._version import __version__
from pairseek.errors import InvalidChoices
from pairseek.model.items import Items
from pairseek.people.ranking import Ranking, Segmentation
from pairseek.store import media
from pairseek.store.database import Database, now
from pairseek.web.pages.contexts.findings import (
    FindingsContext,
    NothingContext,
    QualityRow,
    RankRow,
    ReportPage,
    SegmentContext,
)
from pairseek.web.pages.contexts.maps import GroupItem, GroupMap, GroupPerson
from pairseek.web.pages.contexts.shared import CardSchema, ImageSchema
from pairseek.web.results import tables
from pairseek.web.results.findings import GroupAnswers, GroupFindings, Participation, StudyFindings
from pairseek.web.studies.catalogue import Study
from pairseek.web.views.result import flat, pairs_of, plane

# Largest numbers of items in the table of a ranking and on the map, of which the best-liked are shown, and of people in
# the table of how they answered, the newest first.
MOST_RANKED, MOST_ON_MAP, MOST_PEOPLE = 500, 300, 500
# Posterior probability of the ellipse around a person on the map.
_REGION = 0.5
_PICTURE = re.compile(r"^/media/[^/]+/(?P<name>[^/]+)/(?P<width>\d+)$")


def findings_context(study: Study, found: StudyFindings, *, everyone: bool) -> FindingsContext:
    """Return the findings as plain data, without the people whom the ranking leaves out or with everyone."""
    group, shown = found.group, found.everyone if everyone else found.careful
    empty: FindingsContext = {
        "problem": _problem(shown) if isinstance(shown, InvalidChoices) else None,
        "everyone": everyone,
        "simulated": group.simulated,
        "people": 0,
        "answers": 0,
        "left_out": sum(one.left_out for one in group.people),
        "first": group.first,
        "last": group.last,
        "tiers": 0,
        "unseen": 0,
        "item_count": study.items.n,
        "ranking": [],
        "segments": [],
        "map": None,
        "quality": [_quality(one, shown) for one in group.people[::-1][:MOST_PEOPLE]],
    }
    if isinstance(shown, InvalidChoices):
        return empty
    ranking, segments = shown.ranking, shown.segments
    return {
        **empty,
        "people": ranking.people,
        "answers": ranking.answers,
        "tiers": ranking.tiers,
        "unseen": sum(one.answers == 0 for one in ranking),
        "ranking": _rank_rows(study, ranking),
        "segments": _segments(study, segments),
        "map": _map(study, group, shown) if study.items.d else None,
    }


def _rank_rows(study: Study, ranking: Ranking) -> list[RankRow]:
    rows: list[RankRow] = []
    for one in ranking.items[:MOST_RANKED]:
        numbers = asdict(one)
        # The card has the label.
        del numbers["id"], numbers["label"]
        rows.append(cast("RankRow", {"card": study.card(str(one.id)), **numbers}))
    return rows


def _segments(study: Study, found: Segmentation) -> list[SegmentContext]:
    return [
        {
            "number": number,
            "share": one.share,
            "favourites": [study.card(str(item)) for item in one.favourites],
            "distinctive": [study.card(str(item)) for item in one.distinctive],
        }
        for number, one in enumerate(found.segments, 1)
    ]


def _problem(why: InvalidChoices) -> NothingContext:
    return {"reason": why.reason, "count": why.count, "text": str(why)}


def _quality(one: Participation, shown: GroupFindings | InvalidChoices) -> QualityRow:
    segment, chance, trust = None, None, None
    if not isinstance(shown, InvalidChoices) and one.session in shown.segments.people:
        row = shown.segments.people.index(one.session)
        trust = float(shown.model.trust[row])
        if len(shown.segments) > 1:
            segment = int(shown.segments.membership[row].argmax()) + 1
            chance = float(shown.segments.membership[row].max())
    median = one.quality["median_ms"]
    return {
        **one.quality,
        "session": one.session,
        "name": one.name,
        "answers": one.answers,
        "median_seconds": None if median is None else median / 1000,
        "voided": one.void,
        "left_out": one.left_out,
        "trust": trust,
        "segment": segment,
        "chance": chance,
    }


def _map(study: Study, group: GroupAnswers, shown: GroupFindings) -> GroupMap:
    """Return the items, the people who count and the names of the axes, on the plane of the map."""
    items = study.every_item
    places = dict(zip(map(str, items.ids), flat(items, items.coordinates), strict=True))
    best: list[GroupItem] = [
        {"card": study.card(str(one.id)), "point": places[str(one.id)], "place": one.place}
        for one in shown.ranking.items[:MOST_ON_MAP]
    ]
    people: list[GroupPerson] = []
    segments = shown.segments
    for row, session in enumerate(segments.people):
        if session in group.points:
            point, outline = plane(items).region(*group.points[session], _REGION)
            segment = int(segments.membership[row].argmax()) + 1
            place = (float(point[0]), float(point[1]))
            people.append({"point": place, "outline": pairs_of(outline), "segment": segment})
    return {"items": best, "people": people, "axes": axis_names(items), "segments": len(segments)}


def axis_names(items: Items) -> tuple[str, str]:
    """Return the names of the axes: a column, or the two columns with the largest shares of a principal component."""
    if items.d <= 2:
        return (items.columns[0], items.columns[1] if items.d == 2 else "")
    names = []
    for axis in plane(items).axes.T:
        first, second = np.argsort(-np.abs(axis), kind="stable")[:2]
        sign = "+" if axis[second] * axis[first] > 0 else "\N{MINUS SIGN}"
        lead = "" if axis[first] > 0 else "\N{MINUS SIGN}"
        names.append(
            f"{lead}{items.columns[first]} {sign if axis[first] > 0 else _flipped(sign)} {items.columns[second]}"
        )
    return names[0], names[1]


def _flipped(sign: str) -> str:
    return "\N{MINUS SIGN}" if sign == "+" else "+"


def report_page(
    database: Database, study: Study, found: StudyFindings, *, everyone: bool, language: str = "en"
) -> ReportPage:
    """Return the context of the report, with every picture in it, and the codebook in a language."""
    context = findings_context(study, found, everyone=everyone)
    embed = _embedding(database, study)
    context["ranking"] = [{**row, "card": embed(row["card"])} for row in context["ranking"]]
    context["segments"] = [
        {
            **one,
            "favourites": [embed(card) for card in one["favourites"]],
            "distinctive": [embed(card) for card in one["distinctive"]],
        }
        for one in context["segments"]
    ]
    if context["map"] is not None:
        context["map"]["items"] = [{**one, "card": embed(one["card"])} for one in context["map"]["items"]]
    return {
        "title": study.configuration.title,
        "slug": study.row.slug,
        "question": study.configuration.question,
        "made": now(),
        "version": __version__,
        "findings": context,
        "balanced": not study.items.d and study.configuration.learns(study.items),
        "codebook": [
            {"table": table, "column": column, "meaning": words}
            for table, columns in tables.codebook(study, language).items()
            for column, words in columns.items()
        ],
    }


def _embedding(database: Database, study: Study) -> Callable[[CardSchema], CardSchema]:
    """Return a function that puts the smallest copy of a card's picture into the card itself, as a data address."""
    known: dict[str, str] = {}

    def embed(card: CardSchema) -> CardSchema:
        image = card["media"].get("image")
        if not isinstance(image, Mapping):
            return card
        match = _PICTURE.match(image["src"])
        assert match is not None
        name = match["name"]
        width, height = study.pictures[name][0]
        if name not in known:
            stored = database.read(lambda connection: media.picture(connection, study.row.id, name, width))
            content = "" if stored is None else base64.b64encode(stored.content).decode()
            known[name] = "" if stored is None else f"data:{stored.kind};base64,{content}"
        within: ImageSchema = {
            "src": known[name],
            "srcset": None,
            "width": width,
            "height": height,
            "alt": str(image["alt"]),
        }
        return {**card, "media": {**card["media"], "image": within}}

    return embed

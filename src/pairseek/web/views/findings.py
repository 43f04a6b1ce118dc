"""Views of the findings of a study: group ranking, segments, map of the group and data quality."""

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

# Largest number of items in the ranking; the best-liked ones are shown.
MAX_RANKED_ITEMS = 500
# Largest number of items on the map; the best-liked ones are shown.
MAX_MAP_ITEMS = 300
# Largest number of people in the table of data quality; the newest are shown.
MAX_QUALITY_ROWS = 500
# Posterior probability of the ellipse around a person on the map.
_ELLIPSE_PROBABILITY = 0.5
_PICTURE = re.compile(r"^/media/[^/]+/(?P<name>[^/]+)/(?P<width>\d+)$")


def findings_context(study: Study, findings: StudyFindings, *, everyone: bool) -> FindingsContext:
    """Return the findings as plain data, of everyone or without the people whom the ranking leaves out."""
    group, shown = findings.group, findings.everyone if everyone else findings.careful
    empty: FindingsContext = {
        "problem": _problem(shown) if isinstance(shown, InvalidChoices) else None,
        "everyone": everyone,
        "simulated": group.simulated,
        "people": 0,
        "answers": 0,
        "left_out": sum(person.left_out for person in group.people),
        "first": group.first,
        "last": group.last,
        "tiers": 0,
        "unseen": 0,
        "item_count": study.items.n,
        "ranking": [],
        "segments": [],
        "map": None,
        "quality": [_quality(person, shown) for person in group.people[::-1][:MAX_QUALITY_ROWS]],
    }
    if isinstance(shown, InvalidChoices):
        return empty
    ranking, segments = shown.ranking, shown.segments
    return {
        **empty,
        "people": ranking.people,
        "answers": ranking.answers,
        "tiers": ranking.tiers,
        "unseen": sum(item.answers == 0 for item in ranking),
        "ranking": _rank_rows(study, ranking),
        "segments": _segments(study, segments),
        "map": _map(study, group, shown) if study.items.d else None,
    }


def _rank_rows(study: Study, ranking: Ranking) -> list[RankRow]:
    rows: list[RankRow] = []
    for item in ranking.items[:MAX_RANKED_ITEMS]:
        numbers = asdict(item)
        # The card has the label.
        del numbers["id"], numbers["label"]
        rows.append(cast("RankRow", {"card": study.card(str(item.id)), **numbers}))
    return rows


def _segments(study: Study, segmentation: Segmentation) -> list[SegmentContext]:
    return [
        {
            "number": number,
            "share": segment.share,
            "favourites": [study.card(str(item)) for item in segment.favourites],
            "distinctive": [study.card(str(item)) for item in segment.distinctive],
        }
        for number, segment in enumerate(segmentation.segments, 1)
    ]


def _problem(error: InvalidChoices) -> NothingContext:
    return {"reason": error.reason, "count": error.count, "text": str(error)}


def _quality(person: Participation, shown: GroupFindings | InvalidChoices) -> QualityRow:
    segment, chance, trust = None, None, None
    if not isinstance(shown, InvalidChoices) and person.session in shown.segments.people:
        row = shown.segments.people.index(person.session)
        trust = float(shown.model.trust[row])
        if len(shown.segments) > 1:
            segment = int(shown.segments.membership[row].argmax()) + 1
            chance = float(shown.segments.membership[row].max())
    median = person.quality["median_ms"]
    return {
        **person.quality,
        "session": person.session,
        "name": person.name,
        "answers": person.answers,
        "median_seconds": None if median is None else median / 1000,
        "voided": person.void,
        "left_out": person.left_out,
        "trust": trust,
        "segment": segment,
        "chance": chance,
    }


def _map(study: Study, group: GroupAnswers, shown: GroupFindings) -> GroupMap:
    """Return the ranked items, the people who count, and the names of the axes, on the plane of the map."""
    items = study.every_item
    places = dict(zip(map(str, items.ids), flat(items, items.coordinates), strict=True))
    best: list[GroupItem] = [
        {"card": study.card(str(item.id)), "point": places[str(item.id)], "place": item.place}
        for item in shown.ranking.items[:MAX_MAP_ITEMS]
    ]
    people: list[GroupPerson] = []
    segments = shown.segments
    for row, session in enumerate(segments.people):
        if session in group.points:
            point, outline = plane(items).region(*group.points[session], _ELLIPSE_PROBABILITY)
            segment = int(segments.membership[row].argmax()) + 1
            place = (float(point[0]), float(point[1]))
            people.append({"point": place, "outline": pairs_of(outline), "segment": segment})
    return {"items": best, "people": people, "axes": axis_names(items), "segments": len(segments)}


def axis_names(items: Items) -> tuple[str, str]:
    """Return the names of the axes: a column, or the two columns with the largest loadings on a principal component."""
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
    database: Database, study: Study, findings: StudyFindings, *, everyone: bool, language: str = "en"
) -> ReportPage:
    """Return the context of the report, with all pictures embedded and the codebook in the given language."""
    context = findings_context(study, findings, everyone=everyone)
    embed = _embedding(database, study)
    context["ranking"] = [{**row, "card": embed(row["card"])} for row in context["ranking"]]
    context["segments"] = [
        {
            **segment,
            "favourites": [embed(card) for card in segment["favourites"]],
            "distinctive": [embed(card) for card in segment["distinctive"]],
        }
        for segment in context["segments"]
    ]
    if context["map"] is not None:
        context["map"]["items"] = [{**item, "card": embed(item["card"])} for item in context["map"]["items"]]
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
    """Return a function that embeds the smallest copy of a card's picture in the card as a data URL."""
    urls: dict[str, str] = {}

    def embed(card: CardSchema) -> CardSchema:
        image = card["media"].get("image")
        if not isinstance(image, Mapping):
            return card
        match = _PICTURE.match(image["src"])
        assert match is not None
        name = match["name"]
        width, height = study.pictures[name][0]
        if name not in urls:
            stored = database.read(lambda connection: media.picture(connection, study.row.id, name, width))
            content = "" if stored is None else base64.b64encode(stored.content).decode()
            urls[name] = "" if stored is None else f"data:{stored.kind};base64,{content}"
        embedded: ImageSchema = {
            "src": urls[name],
            "srcset": None,
            "width": width,
            "height": height,
            "alt": str(image["alt"]),
        }
        return {**card, "media": {**card["media"], "image": embedded}}

    return embed

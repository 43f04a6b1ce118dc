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
    QuestionContext,
    RankRow,
    ReportPage,
    SegmentContext,
)
from pairseek.web.pages.contexts.maps import GroupItem, GroupMap, GroupPerson
from pairseek.web.pages.contexts.shared import CardSchema, ImageSchema
from pairseek.web.results import tables
from pairseek.web.results.findings import GroupAnswers, GroupFindings, Participation, StudyFindings
from pairseek.web.studies.catalogue import Study
from pairseek.web.views.result import as_pairs, plane_of, project

# Largest number of items in the ranking; the best-liked are shown.
MAX_RANKED_ITEMS = 500
# Largest number of items on the map; the best-liked are shown.
MAX_MAP_ITEMS = 300
# Largest number of people in the table of data quality; the newest are shown.
MAX_QUALITY_ROWS = 500
# Number of items shown of each group.
_BEST_OF_GROUP = 3
# Posterior probability of the ellipse around a person on the map.
_ELLIPSE_PROBABILITY = 0.5
_PICTURE_PATH = re.compile(r"^/media/[^/]+/(?P<name>[^/]+)/(?P<width>\d+)$")


def findings_context(study: Study, findings: StudyFindings, *, everyone: bool) -> FindingsContext:
    """Return the findings about everyone, or only about people without void or flagged answers."""
    group, result = findings.group, findings.everyone if everyone else findings.careful
    empty: FindingsContext = {
        "problem": _problem(result) if isinstance(result, InvalidChoices) else None,
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
        "groups": _groups(study, group),
        "quality": [_quality_row(person, result) for person in group.people[::-1][:MAX_QUALITY_ROWS]],
    }
    if isinstance(result, InvalidChoices):
        return empty
    ranking, segments = result.ranking, result.segments
    return {
        **empty,
        "people": ranking.people,
        "answers": ranking.answers,
        "tiers": ranking.tiers,
        "unseen": sum(item.answers == 0 for item in ranking),
        "ranking": _rank_rows(study, ranking),
        "segments": _segments(study, segments),
        "map": _group_map(study, group, result) if study.items.d else None,
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


def _groups(study: Study, group: GroupAnswers) -> list[QuestionContext]:
    return [
        {
            "text": question.text,
            "options": [
                {
                    "option": option.option,
                    "people": option.people,
                    "best": [
                        {
                            "card": study.card(str(item.id)),
                            "share": item.share,
                            "share_low": item.share_low,
                            "share_high": item.share_high,
                        }
                        for item in (option.ranking.items[:_BEST_OF_GROUP] if option.ranking else ())
                    ],
                }
                for option in question.options
            ],
        }
        for question in group.groups
    ]


def _problem(error: InvalidChoices) -> NothingContext:
    return {"reason": error.reason, "count": error.count, "text": str(error)}


def _quality_row(person: Participation, result: GroupFindings | InvalidChoices) -> QualityRow:
    segment, chance, trust = None, None, None
    if not isinstance(result, InvalidChoices) and person.session in result.segments.people:
        row = result.segments.people.index(person.session)
        trust = float(result.model.trust[row])
        if len(result.segments) > 1:
            segment = int(result.segments.membership[row].argmax()) + 1
            chance = float(result.segments.membership[row].max())
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


def _group_map(study: Study, group: GroupAnswers, result: GroupFindings) -> GroupMap:
    """Return the best-ranked items and the people in the plane of the map, and the names of its axes."""
    items = study.all_items
    positions = dict(zip(map(str, items.ids), project(items, items.coordinates), strict=True))
    best: list[GroupItem] = [
        {"card": study.card(str(item.id)), "point": positions[str(item.id)], "place": item.place}
        for item in result.ranking.items[:MAX_MAP_ITEMS]
    ]
    people: list[GroupPerson] = []
    segments = result.segments
    for row, session in enumerate(segments.people):
        if session in group.points:
            point, outline = plane_of(items).region(*group.points[session], _ELLIPSE_PROBABILITY)
            segment = int(segments.membership[row].argmax()) + 1
            centre = (float(point[0]), float(point[1]))
            people.append({"point": centre, "outline": as_pairs(outline), "segment": segment})
    return {"items": best, "people": people, "axes": axis_names(items), "segments": len(segments)}


def axis_names(items: Items) -> tuple[str, str]:
    """Name the axes: by a column, or by the two columns with the largest loadings on a principal component."""
    if items.d <= 2:
        return (items.columns[0], items.columns[1] if items.d == 2 else "")
    names = []
    for axis in plane_of(items).axes.T:
        first, second = np.argsort(-np.abs(axis), kind="stable")[:2]
        first_sign = "" if axis[first] > 0 else "\N{MINUS SIGN}"
        second_sign = "+" if axis[second] > 0 else "\N{MINUS SIGN}"
        names.append(f"{first_sign}{items.columns[first]} {second_sign} {items.columns[second]}")
    return names[0], names[1]


def report_page(
    database: Database, study: Study, findings: StudyFindings, *, everyone: bool, language: str = "en"
) -> ReportPage:
    """Return the context of the report, with all pictures embedded and the codebook in this language."""
    context = findings_context(study, findings, everyone=everyone)
    embed = picture_embedder(database, study)
    context["ranking"] = [{**row, "card": embed(row["card"])} for row in context["ranking"]]
    context["segments"] = [
        {
            **segment,
            "favourites": [embed(card) for card in segment["favourites"]],
            "distinctive": [embed(card) for card in segment["distinctive"]],
        }
        for segment in context["segments"]
    ]
    for question in context["groups"]:
        for option in question["options"]:
            option["best"] = [{**item, "card": embed(item["card"])} for item in option["best"]]
    if context["map"] is not None:
        context["map"]["items"] = [{**item, "card": embed(item["card"])} for item in context["map"]["items"]]
    return {
        "title": study.configuration.title,
        "slug": study.row.slug,
        "question": study.configuration.question,
        "made": now(),
        "version": __version__,
        "findings": context,
        "balanced": not study.items.d and study.configuration.learns(study.items.d),
        "codebook": [
            {"table": table, "column": column, "meaning": words}
            for table, columns in tables.codebook(study, language, tables.variables_of(database, study)).items()
            for column, words in columns.items()
        ],
    }


def picture_embedder(database: Database, study: Study) -> Callable[[CardSchema], CardSchema]:
    """Return a function that embeds the smallest copy of a card's picture as a data URL."""
    urls: dict[str, str] = {}

    def embed(card: CardSchema) -> CardSchema:
        image = card["media"].get("image")
        if not isinstance(image, Mapping):
            return card
        match = _PICTURE_PATH.match(image["src"])
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

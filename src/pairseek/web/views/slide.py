"""Slide about the ranking of a study, with sentences that follow from its findings."""

from __future__ import annotations

from pairseek.core.messages import DEFAULT, Words, words
from pairseek.errors import InvalidChoices
from pairseek.people.ranking import Ranking, Segmentation
from pairseek.store.database import Database
from pairseek.web.pages.contexts.slide import Slide, SlideRow
from pairseek.web.pages.slide import MAX_ROWS
from pairseek.web.results.findings import GroupFindings, StudyFindings
from pairseek.web.studies.catalogue import Study
from pairseek.web.views.findings import picture_embedder

# Largest number of segments of which the favourites are named.
_MAX_NAMED_SEGMENTS = 3


def slide_of(
    database: Database, study: Study, findings: StudyFindings, *, everyone: bool, language: str = DEFAULT
) -> Slide:
    """Return the slide; without a ranking, it says why there is none."""
    catalogue, result = words(language), findings.everyone if everyone else findings.careful
    slide: Slide = {"title": study.configuration.title, "sentences": [], "rows": [], "further": 0, "note": ""}
    if isinstance(result, InvalidChoices):
        reason = (
            catalogue.say(f"findings.nothing.{result.reason}", count=result.count) if result.reason else str(result)
        )
        return {**slide, "sentences": [catalogue.say("findings.nothing"), reason]}
    ranking, embed = result.ranking, picture_embedder(database, study)
    rows: list[SlideRow] = [
        {
            "card": embed(study.card(str(item.id))),
            "place": item.place,
            "tier": item.tier,
            "share": item.share,
            "share_low": item.share_low,
            "share_high": item.share_high,
        }
        for item in ranking.items[:MAX_ROWS]
    ]
    note = catalogue.say("findings.from", people=ranking.people, count=ranking.answers)
    if findings.group.simulated:
        note = f"{catalogue.say('slide.simulated')} {note}"
    sentences = slide_sentences(study, result, catalogue)
    return {**slide, "sentences": sentences, "rows": rows, "further": len(ranking) - len(rows), "note": note}


def slide_sentences(study: Study, result: GroupFindings, catalogue: Words) -> list[str]:
    """Return three sentences: who leads, what cannot be told apart from the leader, and the groups of people."""
    return [
        _leader_sentence(study, result.ranking, catalogue),
        _tie_sentence(study, result.ranking, catalogue),
        _segment_sentence(study, result.segments, catalogue),
    ]


def _name(study: Study, item: object) -> str:
    return str(study.card(str(item))["name"])


def _leader_sentence(study: Study, ranking: Ranking, catalogue: Words) -> str:
    leader = ranking.items[0]
    return catalogue.say("slide.leads", name=_name(study, leader.id), percent=_percent(leader.top_1))


def _tie_sentence(study: Study, ranking: Ranking, catalogue: Words) -> str:
    count = sum(item.tier == 1 for item in ranking)
    if count == len(ranking):
        return catalogue.say("slide.alike.all")
    if count == 1:
        return catalogue.say("slide.ahead", name=_name(study, ranking.items[1].id))
    return catalogue.say("slide.alike", count=count - 1)


def _segment_sentence(study: Study, segments: Segmentation, catalogue: Words) -> str:
    if len(segments) == 1:
        return catalogue.say("slide.groups.none")
    named = [
        catalogue.say("slide.group", percent=_percent(segment.share), name=_name(study, segment.favourites[0]))
        for segment in segments.segments[:_MAX_NAMED_SEGMENTS]
    ]
    return catalogue.say("slide.groups", count=len(segments), groups="; ".join(named))


def _percent(share: float) -> str:
    """Return a share in whole percent, or "< 1" or "> 99" where it would round to 0 or 100."""
    whole = round(100 * share)
    return "< 1" if whole == 0 else "> 99" if whole == 100 else str(whole)

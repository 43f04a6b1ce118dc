"""Codebook: descriptions of the columns of the exported tables."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from pairseek.core.media import MEDIA, PICTURE_FILE
from pairseek.web.data.codebook_german import GERMAN

_PLAYED = (
    "Whether its sound or video was played before the answer: yes, no, failed (it could not be loaded) or unknown (a "
    "program did not say); empty if it has none, and for answers before this was recorded."
)
_MEANINGS = {
    "study": "Name of the study in its link.",
    "session": "Id of the session: one participation of one person.",
    "participant": "Value of participant or puid in the link; empty if absent.",
    "PROLIFIC_PID": "Value of PROLIFIC_PID in the link.",
    "STUDY_ID": "Value of STUDY_ID in the link.",
    "SESSION_ID": "Value of SESSION_ID in the link.",
    "simulated": "Whether a simulated person answered.",
    "answer_index": "Number of the answer in the session, from 1, without undone answers; empty for an undone one.",
    "query": "Id of the query within the session; p3-2 is the third pair, asked a second time after an undo.",
    "anchor": "Item with which the two were compared, in a similarity study.",
    "left": "Item on the left.",
    "right": "Item on the right.",
    "winner": "Chosen item; empty for ties and skips.",
    "loser": "Rejected item; empty for ties and skips.",
    "outcome": "left, right, tie or skip.",
    **{f"{side}_played": _PLAYED for side in ("left", "right", "anchor")},
    "rt_ms": "Reaction time in milliseconds, from both items being visible to the answer, measured in the browser.",
    "asked_at": "Time at which the server selected the pair (UTC).",
    "shown_at": "Time at which the browser showed the pair (UTC, browser clock).",
    "sent_at": "Time at which the browser sent the answer (UTC, browser clock).",
    "answered_at": "Time at which the server stored the answer (UTC).",
    "kind": "Kind of the pair: strategy (selected by the strategy), random, repeated or attention.",
    "strategy": "Strategy that selected the pair; given, for random, repeated and attention pairs.",
    "expected_information": "Expected information of the answer in bits, computed before it was given.",
    "probability_left": "Predicted probability that the left item is chosen, computed before the answer.",
    "radius": "Radius of the ball around the estimate that contains 95 % of the posterior.",
    "repeats": "Id of the earlier query that this one repeats.",
    "expected": "Correct answer of an attention pair.",
    "passed": "Whether this answer to an attention pair was correct; the first answer to it counts.",
    "void": "Whether a researcher has voided the answer or the session; void answers do not affect estimates.",
    "focus_losses": "Number of times that the page lost focus.",
    "focus_lost_ms": "Time in milliseconds during which the page had no focus.",
    "attempt": "Number of times that the browser sent the answer.",
    "server_ms": "Time in milliseconds from the arrival of the request to the storage of the answer.",
    "started_at": "Start of the session (UTC).",
    "finished_at": "End of the session (UTC); empty if it has not ended.",
    "reason": "Reason for the end of the session.",
    "seed": "Seed of the session, which with its parts and answers determines all results.",
    "answers": "Number of effective answers and ties, without skips.",
    "ties": "Number of ties.",
    "skips": "Number of skips.",
    "consistency": "Share of repeated pairs with the same answer as before.",
    "attention": "Share of attention pairs whose first answer was correct, also if it was undone.",
    "left_share": "Share of left among the answers with a winner.",
    "fast_share": "Share of answers with a reaction time below 300 ms.",
    "median_rt_ms": "Median of rt_ms.",
    "flags": "Quality flags: attention, inconsistent, one_sided, fast, random; unloaded (a sound or video did not "
    "load) and unheard (a choice without a record that all was played), which leave nobody out of the ranking.",
    "manner": "Inferred class of the person's answers: the most probable of consistent, noisy and random.",
    "agreement": "Share of answers that agree with the person's preference at medium difficulty: posterior median.",
    "k": "Noise constant of the person: posterior median.",
    "lapse": "Share of answers that ignore the items: posterior median.",
    "finished": "Whether the session has ended.",
    "id": "Id of the item.",
    "label": "Label that participants see.",
    "appeal": "Appeal of the item: constant added to its logit for every person.",
    "place": "Place of the item in the group ranking, from 1.",
    "tier": "Tier of the item, from 1: it cannot be told apart from the first item of its tier.",
    "share": "Probability that a person drawn at random chooses the item over another item drawn at random.",
    "share_low": "Lower end of the 90 % interval of the share.",
    "share_high": "Upper end of the 90 % interval of the share.",
    "rank": "Expected rank of the item by its mean utility over people.",
    "rank_low": "Lower end of the 90 % interval of the rank.",
    "rank_high": "Upper end of the 90 % interval of the rank.",
    "top_1": "Probability that the item is the best.",
    "top_3": "Probability that the item is among the best three.",
    "top_5": "Probability that the item is among the best five.",
    PICTURE_FILE: "Name of the picture's file, as the researcher gave it.",
    **{medium.name: medium.meaning for medium in MEDIA.values()},
}
_OTHERWISE = {
    ("answers", "undone"): "Whether the answer was undone.",
    ("ranking", "answers"): "Number of answers in which the item was shown.",
    ("participants", "undone"): "Number of undone answers.",
}
_NUMBERED = {
    r"(agreement|k|lapse)_low": "Lower end of the 95 % credible interval.",
    r"(agreement|k|lapse)_high": "Upper end of the 95 % credible interval.",
}
_COORDINATES = {
    "answers": "Coordinate of the estimate (posterior mean, or the procedure's own) after the answer.",
    "estimates": "Coordinate of the estimate (posterior mean, or the procedure's own).",
    "items": "Coordinate of the item, standardized and scaled as the study says.",
}
_DATA = "Column of the list of items, kept as it was; the search does not use it."
_TRUTH = "Coordinate of a simulated person's true point."


def is_known(column: str) -> bool:
    """Return whether a table has a column of this name whatever the items' coordinates are called."""
    return column in _MEANINGS or any(name == column for _, name in _OTHERWISE)


def texts() -> set[str]:
    """Return every description that the codebook can contain."""
    parts = (_MEANINGS, _OTHERWISE, _NUMBERED, _COORDINATES)
    return {_TRUTH, _DATA, *(words for part in parts for words in part.values())}


def in_language(words: str, language: str) -> str:
    """Return a description in a language, as far as there is a translation."""
    return GERMAN.get(words, words) if language == "de" else words


def meaning(table: str, column: str, coordinates: Sequence[str] = (), data: Collection[str] = ()) -> str:
    """Return the description of a column; coordinates and data of the items have names of their own."""
    if column in data:
        return _DATA
    if column in coordinates:
        return _COORDINATES[table]
    if column.removeprefix("truth_") in coordinates:
        return _TRUTH
    if (table, column) in _OTHERWISE:
        return _OTHERWISE[table, column]
    for pattern, words in _NUMBERED.items():
        if re.fullmatch(pattern, column):
            return words
    return _MEANINGS[column]

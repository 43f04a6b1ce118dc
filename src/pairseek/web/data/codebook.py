"""Codebook: descriptions of the columns of the exported tables."""

from __future__ import annotations

import re

_MEANINGS = {
    "study": "Name of the study in its link.",
    "session": "Id of the session: one person's way through the study.",
    "participant": "What the link said as participant or puid; empty if nothing.",
    "PROLIFIC_PID": "What the link said as PROLIFIC_PID.",
    "STUDY_ID": "What the link said as STUDY_ID.",
    "SESSION_ID": "What the link said as SESSION_ID.",
    "simulated": "Whether a simulated person answered.",
    "answer_index": "1 for the session's first answer that was not taken back, and so on; empty for one that was.",
    "query": "Id of the pair within the session; p3-2 is the third pair, asked for the second time after an undo.",
    "left": "Item that stood left.",
    "right": "Item that stood right.",
    "winner": "Item that was chosen; empty for ties and skips.",
    "loser": "Item that was not chosen; empty for ties and skips.",
    "outcome": "left, right, tie or skip.",
    "rt_ms": "Milliseconds from both items being visible to the answer, measured in the browser.",
    "asked_at": "When the server settled on the pair (UTC).",
    "shown_at": "When the browser showed it (UTC, the browser's clock).",
    "sent_at": "When the browser sent the answer (UTC, the browser's clock).",
    "answered_at": "When the server stored the answer (UTC).",
    "kind": "Why this pair: strategy (chosen to learn most), random, repeated or attention.",
    "strategy": "Strategy that chose the pair; given, where it was random, repeated or an attention pair.",
    "expected_information": "Bits that the answer was expected to tell, before it came.",
    "probability_left": "Probability of the left item being chosen, as believed before the answer.",
    "radius": "Radius of the ball around the estimate that holds 95 % of the posterior.",
    "repeats": "Id of the earlier pair that this one repeats.",
    "expected": "Item that an attentive person chooses in an attention pair.",
    "passed": "Whether an attention pair was answered so.",
    "void": "Whether a researcher has voided the answer or the session; void answers teach nothing.",
    "focus_losses": "Times that the page went out of sight.",
    "focus_lost_ms": "Milliseconds that it was out of sight.",
    "attempt": "How many times the browser had to send the answer.",
    "server_ms": "Milliseconds from the request's arrival to the answer being stored.",
    "started_at": "When the session began (UTC).",
    "finished_at": "When it ended (UTC); empty if it has not.",
    "reason": "Why it ended.",
    "seed": "Seed of the session: with it, the parts of the session and the answers, everything can be computed again.",
    "answers": "Answers and ties that count; skips do not.",
    "ties": "Ties.",
    "skips": "Skips.",
    "consistency": "Share of repeated pairs that were answered as the first time.",
    "attention": "Share of attention pairs that were answered as expected.",
    "left_share": "Share of left among answers with a winner.",
    "fast_share": "Share of answers faster than 300 ms.",
    "median_rt_ms": "Median of rt_ms.",
    "flags": "Signs worth a look: attention, inconsistent, one_sided, fast, random.",
    "manner": "How the person answers, as inferred: consistent, noisy or random; the likeliest of the three.",
    "agreement": "Share of answers that follow the person's own taste in a question of middling difficulty: median.",
    "k": "Noise constant of the person: median of what is believed.",
    "lapse": "Share of answers that the person gave without looking: median of what is believed.",
    "finished": "Whether the session has ended.",
    "id": "Id of the item.",
    "label": "What people see of its name.",
    "appeal": "Number added to its logit whoever is asked.",
    "text": "Text that is shown.",
    "image": "Picture that is shown.",
    "alt": "The picture in words.",
    "colour": "Colour that is shown, #rrggbb.",
    "markdown": "Formatted text that is shown.",
    "audio": "Address of a sound.",
    "video": "Address of a film.",
}
_OTHERWISE = {
    ("answers", "undone"): "Whether the answer was taken back.",
    ("participants", "undone"): "Answers that were taken back.",
}
_NUMBERED = {
    r"(agreement|k|lapse)_low": "Lower end of the interval that holds 95 % of what is believed.",
    r"(agreement|k|lapse)_high": "Upper end of the interval that holds 95 % of what is believed.",
    r"mean_\d+": "Coordinate of the estimate (posterior mean, or the procedure's own) after the answer.",
    r"truth_\d+": "Coordinate of a simulated person's true point.",
    r"x\d+": "Coordinate of the item.",
}


def meaning(table: str, column: str) -> str:
    """Return the description of a column."""
    if (table, column) in _OTHERWISE:
        return _OTHERWISE[table, column]
    for pattern, words in _NUMBERED.items():
        if re.fullmatch(pattern, column):
            return words
    return _MEANINGS[column]

"""Settings of a study that a quiz follows, leaves out or refuses."""

from __future__ import annotations

from pairseek.errors import InvalidParameter
from pairseek.web.studies.configuration import StudyConfiguration

FOLLOWED = frozenset(
    {
        "title", "slug", "language", "question", "instructions", "debrief", "strategy", "response", "prior", "goal",
        "posterior", "candidates", "rest", "askable", "coordinates", "standardize", "scaled", "answers",
        "stop", "offer.undo", "seed",
    }
)  # fmt: skip
"""Settings that a quiz follows.

A quiz is a tree of questions: a stop rule ends a path through it, and an unknown reliability is inferred along each
path.
"""

LEFT_OUT = {
    "consent": "a quiz stores and sends no data",
    "practice": "the first answer of a quiz can be undone",
    "play": "a quiz has neither sounds nor videos",
    "resume": "a quiz keeps no sessions",
    "retention": "a quiz keeps no data",
    "learn": "a quiz collects no answers to learn from",
    "completion": "a quiz sends nobody back; use the callback, see docs/how-to/embedding-a-quiz.md",
}
"""Settings that have no effect in a quiz, with the reason."""

REFUSED = {
    "offer.tie": "questions of a quiz have two outcomes, and a tie would be a third",
    "offer.skip": "questions of a quiz have two outcomes, and a skip would be a third",
    "repeated": "a quiz collects no answers, so their consistency cannot be measured",
    "random": "the random pairs of a quiz would be the same for everybody",
    "attention": "a quiz collects no answers, so attention cannot be checked",
    "invited": "a quiz is a file, which cannot check invitations",
    "kind": "a quiz asks for preferences between two items",
    "dimensions": "a quiz uses the coordinates of its items",
    "result": "the file of a quiz contains all results, so they cannot be hidden",
}
"""Settings that a quiz cannot follow, with the reason."""


def check_settings(configuration: StudyConfiguration) -> list[str]:
    """Raise `InvalidParameter` if a quiz cannot follow a setting; return a note for each setting that is left out."""
    notes = []
    for name in changed_settings(configuration):
        if name in FOLLOWED:
            continue
        if name not in LEFT_OUT:
            reason = REFUSED.get(name, "quizzes do not support it")
            raise InvalidParameter(
                f"a study with the setting {name!r} cannot be compiled: {reason}; compile a study file without it",
                field=name,
            )
        notes.append(f"the setting {name!r} is left out: {LEFT_OUT[name]}")
    return notes


def changed_settings(configuration: StudyConfiguration) -> list[str]:
    """Return the names of settings that differ from their defaults, with the fields of ``offer`` listed separately."""
    defaults = StudyConfiguration(title=configuration.title)
    out = []
    for name in StudyConfiguration.model_fields:
        value, default = getattr(configuration, name), getattr(defaults, name)
        if name == "offer":
            fields = type(value).model_fields
            out += [f"offer.{field}" for field in fields if getattr(value, field) != getattr(default, field)]
        elif value != default:
            out.append(name)
    return out

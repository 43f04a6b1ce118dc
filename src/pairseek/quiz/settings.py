"""Settings of a study that a quiz keeps, leaves out, or refuses."""

from __future__ import annotations

from pairseek.errors import InvalidParameter
from pairseek.web.studies.configuration import StudyConfiguration

KEPT = frozenset(
    {
        "title", "slug", "language", "question", "instructions", "debrief", "strategy", "response", "prior", "goal",
        "posterior", "candidates", "rest", "askable", "coordinates", "standardize", "scaled", "answers",
        "stop", "offer.undo", "seed",
    }
)  # fmt: skip
"""Settings that a quiz follows. A stop rule ends a path; the posterior infers an unknown reliability on each path."""

LEFT_OUT = {
    "consent": "a quiz stores and sends nothing to consent to",
    "practice": "the first pair of a quiz can be taken back",
    "play": "a quiz has neither sounds nor videos",
    "resume": "a quiz keeps no sessions",
    "retention": "a quiz keeps no data",
    "learn": "a quiz collects no answers to learn from",
    "completion": "a quiz returns nobody; use the callback, see docs/how-to/embedding-a-quiz.md",
}
"""Settings that have no effect in a quiz, with the reason."""

REFUSED = {
    "offer.tie": "a question of a quiz has two outcomes, and a tie is a third",
    "offer.skip": "a question of a quiz has two outcomes, and a skip is a third",
    "repeated": "a quiz collects no answers whose consistency could be measured",
    "random": "the random pairs of a quiz would be the same for everybody",
    "attention": "a quiz collects no answers whose attention could be judged",
    "invited": "a quiz is a file, and cannot ask for an invitation",
    "kind": "a quiz asks for preferences between two items",
    "dimensions": "a quiz has the coordinates of its items",
    "result": "the file of a quiz contains all results, so that nobody can be kept from them",
}
"""Settings whose study has no quiz, with the reason."""


def check_settings(configuration: StudyConfiguration) -> list[str]:
    """Raise an `InvalidParameter` if a study has no quiz; return a note for each setting that is left out."""
    notes = []
    for name in changed_settings(configuration):
        if name in KEPT:
            continue
        if name not in LEFT_OUT:
            reason = REFUSED.get(name, "quizzes do not know it")
            raise InvalidParameter(
                f"a study with the setting {name!r} cannot be compiled: {reason}; compile a study file without it",
                field=name,
            )
        notes.append(f"the setting {name!r} is left out: {LEFT_OUT[name]}")
    return notes


def changed_settings(configuration: StudyConfiguration) -> list[str]:
    """Return the names of the settings that differ from their defaults; those of ``offer`` one by one."""
    plain = StudyConfiguration(title=configuration.title)
    out = []
    for name in StudyConfiguration.model_fields:
        here, default = getattr(configuration, name), getattr(plain, name)
        if name == "offer":
            out += [f"offer.{one}" for one in type(here).model_fields if getattr(here, one) != getattr(default, one)]
        elif here != default:
            out.append(name)
    return out

"""Settings of a study that a quiz follows, ignores or refuses."""

from __future__ import annotations

from pairseek.errors import InvalidParameter
from pairseek.web.studies.configuration import StudyConfiguration

FOLLOWED_SETTINGS = frozenset(
    {
        "title", "slug", "language", "question", "instructions", "debrief", "strategy", "response", "prior", "goal",
        "texts", "posterior", "candidates", "rest", "askable", "coordinates", "standardize", "scaled", "answers",
        "stop", "offer.undo", "seed",
    }
)  # fmt: skip
"""Settings that a quiz follows; a stop rule ends a path, and an unknown reliability is inferred along each path."""

IGNORED_SETTINGS = {
    "consent": "a quiz stores and sends no data",
    "practice": "the first answer of a quiz can be undone",
    "play": "a quiz has neither sounds nor videos",
    "resume": "a quiz keeps no sessions",
    "retention": "a quiz keeps no data",
    "learn": "a quiz collects no answers to learn from",
    "accent": "a quiz has the colours of its page",
    "closes": "the files of a quiz can be opened as long as you serve them",
    "quota": "a quiz counts nobody",
    "completion": "a quiz sends nobody back; use the callback, see docs/how-to/embedding-a-quiz.md",
}
"""Settings that have no effect in a quiz, with the reason."""

REFUSED_SETTINGS = {
    "offer.tie": "a question of a quiz has two outcomes, and a tie would be a third",
    "offer.skip": "a question of a quiz has two outcomes, and a skip would be a third",
    "repeated": "a quiz collects no answers, so their consistency cannot be measured",
    "random": "the random pairs of a quiz would be the same for everybody",
    "attention": "a quiz collects no answers, so attention cannot be checked",
    "invited": "a quiz has no server that could check invitations",
    "kind": "a quiz asks for preferences between two items",
    "dimensions": "a quiz uses the coordinates of its items",
    "names": "a quiz always shows the names of its items",
    "questions": "a quiz keeps no replies",
    "result": "the files of a quiz contain all results, so they cannot be hidden",
}
"""Settings that a quiz cannot follow, with the reason."""


def check_settings(configuration: StudyConfiguration) -> list[str]:
    """Raise `InvalidParameter` if a quiz cannot follow a setting; return a note for each ignored setting."""
    notes = []
    for name in changed_settings(configuration):
        if name in FOLLOWED_SETTINGS:
            continue
        if name not in IGNORED_SETTINGS:
            reason = REFUSED_SETTINGS.get(name, "quizzes do not support it")
            raise InvalidParameter(
                f"a study with the setting {name!r} cannot be compiled: {reason}; compile a study file without it",
                field=name,
            )
        notes.append(f"the setting {name!r} has no effect: {IGNORED_SETTINGS[name]}")
    return notes


def changed_settings(configuration: StudyConfiguration) -> list[str]:
    """Return the names of settings that differ from their defaults, with the fields of ``offer`` listed separately."""
    defaults = StudyConfiguration(title=configuration.title)
    names = []
    for name in StudyConfiguration.model_fields:
        value, default = getattr(configuration, name), getattr(defaults, name)
        if name == "offer":
            fields = type(value).model_fields
            names += [f"offer.{field}" for field in fields if getattr(value, field) != getattr(default, field)]
        elif value != default:
            names.append(name)
    return names

"""Rankings of the people who gave the same answer to one of the researcher's own questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pairseek.errors import InvalidChoices
from pairseek.people.ranking import Ranking
from pairseek.people.ranking.ranking import ranking_from_posterior
from pairseek.people.ranking.utilities import mean_utilities
from pairseek.web.learning.study_choices import choices_of
from pairseek.web.sessions.history import SessionHistory
from pairseek.web.studies.catalogue import Study
from pairseek.web.studies.questions import replies_by_question

# Largest number of groups that are ranked, largest first; each needs a fit of its own.
_MAX_RANKED_GROUPS = 24


@dataclass(frozen=True, slots=True)
class OptionGroup:
    """People who chose an option; ``ranking`` is None if their answers are too few for one."""

    option: str
    people: int
    ranking: Ranking | None


@dataclass(frozen=True, slots=True)
class QuestionGroups:
    """Groups of a choice among the researcher's own questions, in the order of its options."""

    text: str
    options: tuple[OptionGroup, ...]


def question_groups(study: Study, sessions: Sequence[SessionHistory]) -> tuple[QuestionGroups, ...]:
    """Rank the people of every option of every choice that somebody has answered."""
    replies = [(session, replies_by_question(session.row.replies)) for session in sessions]
    members = {
        (question.name, option): [session for session, given in replies if given.get(question.name) == option]
        for question in study.configuration.questions
        for option in question.options
    }
    largest = sorted(members, key=lambda group: -len(members[group]))[:_MAX_RANKED_GROUPS]
    rankings = {group: _ranking(study, members[group]) for group in largest}
    groups = []
    for question in study.configuration.questions:
        keys = [(question.name, option) for option in question.options]
        if any(members[key] for key in keys):
            options = (OptionGroup(key[1], len(members[key]), rankings.get(key)) for key in keys)
            groups.append(QuestionGroups(question.text, tuple(options)))
    return tuple(groups)


def _ranking(study: Study, sessions: Sequence[SessionHistory]) -> Ranking | None:
    choices = choices_of(study, sessions)
    if choices is None:
        return None
    try:
        return ranking_from_posterior(mean_utilities(choices, study.all_items), study.all_items)
    except InvalidChoices:
        return None

"""A study's goal: which search it makes, when a session ends, and what the result shows."""

import pytest

import pairseek as ps
from helpers.refusals import refused
from helpers.serving import answer_to, configuration, some_items
from pairseek.errors import InvalidParameter
from pairseek.store import migrate
from pairseek.store.database import Database
from pairseek.web.sessions import history
from pairseek.web.sessions.service import Sessions
from pairseek.web.studies.catalogue import Catalogue
from pairseek.web.studies.creation import create_study
from pairseek.web.studies.forms import record_of
from pairseek.web.views.result import session_result

ITEMS = some_items(12)
# A taste that only coordinates explain, so that few answers suffice.
SURE = {"name": "logistic", "k": 4.0, "noise": "constant", "residual": 0.0}


@pytest.fixture
def database(tmp_path):
    made = Database(str(tmp_path / "g.db"))
    migrate.prepare(made)
    yield made
    made.close()


def finished(database, **settings):
    """Return the study and the history of a person who likes a high first coordinate, and their state at the end."""
    create_study(database, configuration(**settings), ITEMS, is_open=True, who="test")
    sessions = Sessions(database, Catalogue(database))
    study = Catalogue(database).by_slug("which")
    session_id, _ = sessions.open(study, {})
    state = sessions.state(sessions.by_id(session_id))
    first = state
    while state["status"] == "asking":
        left, right = (ITEMS.coordinates[ITEMS.index(state["query"][side]["id"]), 0] for side in ("left", "right"))
        outcome = "left" if left > right else "right"
        state = sessions.answer(sessions.by_id(session_id), answer_to(state["query"]["query"], outcome, 900))
    (one,) = history.read_histories(database, study, [sessions.by_id(session_id)])
    return study, one, first, state


@pytest.mark.parametrize(
    ("goal", "strategy", "stop"),
    [
        ("taste", ps.InfoGain, ()),
        ("best", ps.EUBO, (ps.GainBelow(0.1),)),
        ("list", ps.Shortlist, (ps.GainBelow(size=3),)),
    ],
)
def test_the_goal_provides_strategy_and_stop_rule_unless_they_are_given(goal, strategy, stop):
    made = configuration(goal=goal)
    search = made.resolved(ITEMS)
    assert isinstance(search.strategy, strategy)
    assert tuple(search.stop) == stop
    assert made.stops_early == bool(stop)
    own = configuration(goal=goal, strategy="epmv", stop=[])
    assert isinstance(own.resolved(ITEMS).strategy, ps.EPMV)
    assert not own.resolved(ITEMS).stop
    assert not own.stops_early
    ruled = configuration(goal=goal, stop=[{"name": "radius", "radius": 0.1}])
    assert list(ruled.resolved(ITEMS).stop) == [ps.RadiusBelow(0.1)]


def test_only_a_goal_with_a_stop_rule_does_without_a_number_of_answers():
    assert configuration(goal="best", answers=None).stops_early
    for settings in ({"goal": "taste"}, {"goal": "best", "stop": []}):
        with pytest.raises(InvalidParameter):
            configuration(answers=None, **settings)
    with refused("goal"):
        configuration(goal="love")


def test_the_form_has_the_goal_and_a_way_to_ask_all_answers():
    assert record_of(None, {"title": "Which", "goal": "list"})["goal"] == "list"
    assert "stop" not in record_of(None, {"title": "Which", "goal": "list", "stop.name": ""})
    assert record_of(None, {"title": "Which", "goal": "list", "stop.name": "never"})["stop"] == []
    with refused("stop.name"):
        record_of(None, {"title": "Which", "stop.name": "tired"})


@pytest.mark.parametrize("goal", ["best", "list"])
def test_a_session_ends_when_the_goal_is_reached_and_shows_what_was_found(database, goal):
    study, one, first, last = finished(database, goal=goal, answers=120, response=SURE)
    assert first["progress"]["total"] is None
    assert last["status"] == "finished"
    assert last["progress"]["answered"] < 120
    # The session is computed again with the goal that it began with.
    state = one.state(study, one.done)
    assert state.search.configuration.goal.name == one.parts.record["goal"] == goal
    result = session_result(study, one)
    assert result.map is None
    assert [near["card"]["id"] for near in result.nearest] == [str(r.id) for r in state.search.recommend(3)]
    assert not {"answers", "predicted"} & {sentence["key"] for sentence in result.learned}
    best = max(ITEMS.ids, key=lambda name: ITEMS.coordinates[ITEMS.index(name), 0])
    # The person likes the item of the highest first coordinate, which belongs to what was found.
    assert str(best) in [near["card"]["id"] for near in result.nearest]


@pytest.mark.parametrize("goal", ["taste", "best", "list"])
def test_the_result_page_and_stop_rules_have_one_probability(database, goal):
    study, one, *_ = finished(database, goal=goal, answers=6, stop=[])
    search = one.state(study, one.done).search
    shown = {near["card"]["id"]: near["probability"] for near in session_result(study, one).nearest}
    stored = dict(one.row.final["nearest"])
    best = str(search.recommend(1)[0].id)
    assert shown[best] == stored[best] == search.best_probability()


def test_a_taste_is_shown_on_the_map(database):
    study, one, first, last = finished(database, answers=6)
    assert first["progress"]["total"] == last["progress"]["answered"] == 6
    result = session_result(study, one)
    assert result.map is not None
    assert len(result.nearest) == 6


def test_sessions_from_before_there_were_goals_are_about_a_taste(database):
    study, one, *_ = finished(database, answers=4)
    record = {name: value for name, value in one.parts.record.items() if name != "goal"}
    parts = type(one.parts)(one.parts.study_items, record)
    assert parts.search(3).configuration.goal.name == "taste"
    assert study.configuration.goal == "taste"

"""A study of items without coordinates: the first people, learning by itself, versions, new items, replay."""

import io
import json
import re
import threading
import zlib
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import sqlalchemy as sa
from PIL import Image

from helpers.serving import answer_to, configuration, csrf_of, served
from pairseek import cli
from pairseek.client import Client
from pairseek.errors import InvalidChoices, InvalidItems
from pairseek.model.items import Items
from pairseek.people.learning import MIN_SESSIONS, RANDOM_SHARE
from pairseek.people.population import Choices
from pairseek.store import learning as stored_learning
from pairseek.store import migrate, schema
from pairseek.store import populations as stored_populations
from pairseek.store import sessions as stored_sessions
from pairseek.store.database import Database
from pairseek.store.events import AnsweredPair
from pairseek.web.access.auth import make_token, set_password
from pairseek.web.learning import populations
from pairseek.web.learning.study_choices import appeal_before
from pairseek.web.results import bundle, tables
from pairseek.web.sessions import forgetting, history
from pairseek.web.sessions.schedule import scheduled_pair
from pairseek.web.sessions.service import Sessions
from pairseek.web.studies.catalogue import Catalogue
from pairseek.web.studies.creation import add_items, create_study, from_file
from pairseek.web.studies.items import read_items
from pairseek.web.views.participant import result_page
from pairseek.web.views.result import session_result

DOGS = ["beagle", "boxer", "collie", "corgi", "husky", "poodle", "pug", "spitz", "terrier", "whippet"]
ITEMS = Items(ids=DOGS, labels=[name.title() for name in DOGS], data={"text": [f"A {name}." for name in DOGS]})
ANSWERS = 8


@pytest.fixture
def database(tmp_path):
    made = Database(str(tmp_path / "dogs.db"))
    migrate.prepare(made)
    # With a seed the balanced pairs are the same in every run of the tests.
    create_study(made, configuration(answers=ANSWERS, seed=5), ITEMS, is_open=True, who="test")
    yield made
    made.close()


def worker(database):
    return Sessions(database, Catalogue(database))


def study(database):
    return Catalogue(database).by_slug("which")


def answered(database, people, *, count=ANSWERS, seed=0, always=None):
    """People who like the last of the list, each with tastes of their own; or who always take one side."""
    sessions, rng, made = worker(database), np.random.default_rng(seed), []
    for person in range(people):
        which = study(database)
        utility = dict(
            zip(which.items.ids, np.linspace(-2, 2, which.items.n) + rng.normal(size=which.items.n), strict=True)
        )
        session_id, _ = sessions.open(which, {}, seed=1000 * seed + person)
        made.append(session_id)
        state = sessions.state(sessions.by_id(session_id))
        for _ in range(count):
            left, right = (utility[state["query"][side]["id"]] for side in ("left", "right"))
            outcome = always or ("left" if rng.random() < 1 / (1 + np.exp(right - left)) else "right")
            state = sessions.answer(sessions.by_id(session_id), answer_to(state["query"]["query"], outcome, 500))
    return made


def queries(database, session_id):
    sessions = worker(database)
    row = sessions.by_id(session_id)
    live = sessions.snapshot(row)
    sessions.state(row)
    return live.done


class TestFile:
    def test_title_items_and_answers_are_enough(self, tmp_path):
        (tmp_path / "dogs.csv").write_text("id,label,text\n" + "".join(f"{d},{d.title()},A {d}.\n" for d in DOGS))
        (tmp_path / "dogs.yaml").write_text("title: Which dog?\nitems: dogs.csv\nanswers: 12\n")
        settings, items, *_ = from_file(tmp_path / "dogs.yaml")
        assert (items.n, items.d, items.ids[0]) == (10, 0, "beagle")
        assert settings.learns(items.d)
        made = Database(str(tmp_path / "d.db"))
        migrate.prepare(made)
        assert create_study(made, settings, items, is_open=True, who="test") == "which-dog"
        made.close()

    def test_fewer_than_four_items_are_refused_with_words(self, database):
        three = Items(ids=DOGS[:3])
        with pytest.raises(InvalidItems):
            create_study(database, configuration(slug="few"), three, is_open=True, who="test")

    def test_rows_without_ids_are_numbered(self, tmp_path):
        (tmp_path / "i.csv").write_text("label,text\nBeagle,A dog.\nBoxer,A dog.\n")
        items = read_items(tmp_path / "i.csv")
        assert (items.ids, items.labels) == (("1", "2"), ("Beagle", "Boxer"))


def impression(database, session_id):
    """The recommended items on the result page of one of the first people, and the number of people before them."""
    which = study(database)
    one = history.read_histories(database, which, [worker(database).by_id(session_id)])[0]
    crowd = appeal_before(database, which, one)
    shown = [near["card"]["id"] for near in session_result(which, one, crowd).nearest]
    return shown, 0 if crowd is None else crowd.people


class TestFirstImpression:
    def test_it_rests_on_ones_own_answers_and_on_those_of_the_people_before(self, database):
        earlier = answered(database, 8, seed=2)
        # A person with no answer yet would be told what the others like.
        (one,) = answered(database, 1, count=0)
        own = history.read_histories(database, study(database), [worker(database).by_id(one)])[0]
        crowd = appeal_before(database, study(database), replace(own, row=replace(own.row, finished_at="9999")))
        assert crowd.people == len(earlier)
        shown = [near["card"]["id"] for near in session_result(study(database), own, crowd).nearest]
        assert set(DOGS[-2:]) <= set(shown[:4])
        assert not set(DOGS[:2]) & set(shown[:4])

    def test_the_page_shows_it(self, database):
        answered(database, 8, seed=2)
        (one,) = answered(database, 1, seed=3, always="left")
        page = result_page(SimpleNamespace(database=database), study(database), worker(database).by_id(one))
        shown = [near["card"]["id"] for near in page["nearest"]]
        alone = history.read_histories(database, study(database), [worker(database).by_id(one)])[0]
        assert (shown, page["before"], page["first"]) == (*impression(database, one), True)
        assert shown != [near["card"]["id"] for near in session_result(study(database), alone).nearest]

    def test_the_persons_own_answers_count_more_than_each_of_the_others(self, database):
        answered(database, 6, seed=2)
        made = [answered(database, 1, seed=3, always=side)[0] for side in ("left", "right")]
        first, second = (impression(database, one)[0] for one in made)
        assert first != second

    def test_it_stays_when_others_finish_and_leaves_void_sessions_out(self, database):
        earlier = answered(database, 8, seed=2)
        (one,) = answered(database, 1, seed=7)
        before = impression(database, one)
        assert before[1] == 8
        answered(database, 2, seed=8)
        assert impression(database, one) == before
        for name in earlier[:2]:
            database.write(lambda c, name=name: stored_sessions.mark(c, name, None, "void", "a test", "ann"))
        assert impression(database, one)[1] == 6

    def test_the_first_two_have_their_own_answers_alone(self, database):
        for number in range(2):
            (one,) = answered(database, 1, seed=number)
            shown, count = impression(database, one)
            assert (len(shown), count) == (6, 0)


class TestFirstPeople:
    def test_they_are_asked_balanced_pairs(self, database):
        people = answered(database, 5)
        shown, pairs = dict.fromkeys(DOGS, 0), []
        for session_id in people:
            own = [frozenset((pair.left, pair.right)) for pair in queries(database, session_id)]
            assert len(set(own)) == ANSWERS
            pairs += own
            for pair in own:
                for item in pair:
                    shown[item] += 1
        # 5 people and 8 answers are 80 places for 10 items.
        assert set(shown.values()) <= {7, 8, 9}
        assert len(set(pairs)) >= 20

    def test_undo_and_another_worker_ask_the_same(self, database):
        (session_id,) = answered(database, 1, count=4)
        sessions = worker(database)
        before = sessions.state(sessions.by_id(session_id))["query"]
        query = before["query"]
        sessions.answer(sessions.by_id(session_id), answer_to(query, "left", 300))
        again = sessions.undo(sessions.by_id(session_id), query)["query"]
        assert [again[side]["id"] for side in ("left", "right")] == [before[side]["id"] for side in ("left", "right")]
        assert worker(database).state(sessions.by_id(session_id))["query"] == again


class TestLearning:
    def test_at_ten_and_then_by_a_quarter_and_sessions_keep_their_version(self, database):
        early = answered(database, MIN_SESSIONS - 1)
        assert populations.learn_if_due(database, study(database)) is None
        early += answered(database, 1, seed=1)
        (open_now,) = answered(database, 1, count=3, seed=2)
        assert populations.learn_if_due(database, study(database)) == 1
        assert populations.learn_if_due(database, study(database)) is None
        later = answered(database, 3, seed=3)
        assert populations.learn_if_due(database, study(database)) == 2
        sessions = worker(database)
        versions = [sessions.by_id(one).population for one in (early[0], open_now, later[0])]
        assert versions == [None, None, 1]
        assert queries(database, open_now)[0].kind == "random"
        kinds = [pair.kind for one in later for pair in queries(database, one)]
        assert kinds.count("strategy") > len(kinds) / 2
        rows = populations.versions(database, study(database))
        assert [row["version"] for row in rows] == [2, 1]
        assert rows[1]["facts"]["sessions"] == 10
        assert rows[1]["facts"]["after"]["accuracy"] > 0.5

    @pytest.mark.parametrize("who", ["a person", "retention"])
    def test_after_a_person_is_forgotten_it_learns_at_once_without_them(self, database, who):
        first = answered(database, MIN_SESSIONS)
        assert populations.learn_if_due(database, study(database)) == 1
        later = answered(database, 3, seed=1)
        assert populations.learn_if_due(database, study(database)) == 2
        gone = first[4]
        # Version 1 and 2 were learned from the person: sessions begin without a population now.
        if who == "a person":
            forgetting.forget_session(database, study(database), gone, "ann")
        else:
            retention = {"retention": {"days": 1, "after": "session"}}
            settings = {**study(database).row.configuration, **retention}
            long_ago = schema.sessions.update().where(schema.sessions.c.id == gone).values(finished_at="2000")
            database.write(lambda c: c.execute(schema.studies.update().values(configuration=settings)))
            database.write(lambda c: c.execute(long_ago))
            assert len(forgetting.expire(database, Catalogue(database))) == 1
        number = study(database).row.id
        assert database.read(lambda connection: stored_populations.current(connection, number)) is None
        assert populations.learn_if_due(database, study(database)) == 3
        assert populations.learn_if_due(database, study(database)) is None
        known = database.read(lambda connection: stored_populations.sessions_learned_from(connection, number, 3))
        assert known == {*first, *later} - {gone}
        # What was learned is what the others teach, to the bit, and of the dropped versions nothing is left.
        contents = database.read(lambda c: [row.content for row in c.execute(sa.select(schema.populations.c.content))])
        assert [bool(content) for content in contents] == [False, False, True]
        for table in (schema.learned_from, schema.populations):
            database.write(lambda c, table=table: c.execute(table.delete()))
        assert populations.learn_version(database, study(database)).learned == json.loads(zlib.decompress(contents[2]))

    def test_a_study_that_does_not_learn_by_itself_is_left_alone_after_a_person_was_forgotten(self, database):
        first = answered(database, MIN_SESSIONS)
        populations.learn_if_due(database, study(database))
        populations.switch(database, study(database), "ann", is_on=False)
        forgetting.forget_session(database, study(database), first[0], "ann")
        answered(database, 1, seed=1)
        assert populations.learn_if_due(database, study(database)) is None

    def test_a_bundle_replays(self, database, tmp_path):
        answered(database, MIN_SESSIONS)
        populations.learn_if_due(database, study(database))
        answered(database, 2, seed=4)
        content = io.BytesIO()
        bundle.write(database, study(database), content)
        path = tmp_path / "which.zip"
        path.write_bytes(content.getvalue())
        compared = list(bundle.replayed(bundle.read(path)))
        assert len(compared) == MIN_SESSIONS + 2
        assert all(one.same for one in compared)
        assert len(Choices.read(path).people) == MIN_SESSIONS + 2

    def test_one_of_two_learners_at_once_learns(self, database):
        answered(database, MIN_SESSIONS)
        entered, go, found = threading.Event(), threading.Event(), []

        def slow(*given):
            entered.set()
            assert go.wait(20)
            return populations.learn_version(*given)

        thread = threading.Thread(
            target=lambda: found.append(populations.learn_if_due(database, study(database), slow))
        )
        thread.start()
        assert entered.wait(20)
        assert populations.learn_if_due(database, study(database)) is None
        go.set()
        thread.join(30)
        assert found == [1]
        assert len(populations.versions(database, study(database))) == 1

    def test_a_failure_keeps_the_last_version_and_says_why(self, database):
        answered(database, MIN_SESSIONS)
        populations.learn_if_due(database, study(database))
        answered(database, 3, seed=5)

        def fails(*_given):
            raise InvalidChoices("the answers are strange")

        assert populations.learn_if_due(database, study(database), fails) is None
        state = database.read(lambda c: stored_learning.state(c, study(database).row.id))
        assert state.failure == "the answers are strange"
        sessions = worker(database)
        assert sessions.by_id(answered(database, 1, count=1)[0]).population == 1
        # It is not tried again before more people have come.
        assert populations.learn_if_due(database, study(database)) is None
        answered(database, 4, seed=6)
        assert populations.learn_if_due(database, study(database)) == 2
        assert database.read(lambda c: stored_learning.state(c, study(database).row.id)).failure is None

    def test_the_owner_switches_it_off_and_goes_back(self, database):
        answered(database, MIN_SESSIONS)
        populations.learn_if_due(database, study(database))
        answered(database, 3, seed=7)
        populations.switch(database, study(database), "ann", is_on=False)
        assert populations.learn_if_due(database, study(database)) is None
        populations.switch(database, study(database), "ann", is_on=True)
        assert populations.learn_if_due(database, study(database)) == 2
        populations.choose_version(database, study(database), "ann", 1)
        sessions = worker(database)
        assert sessions.by_id(answered(database, 1, count=1)[0]).population == 1
        populations.choose_version(database, study(database), "ann", 0)
        (first,) = answered(database, 1, count=1)
        assert sessions.by_id(first).population is None
        populations.switch(database, study(database), "ann", is_on=True)
        assert sessions.by_id(answered(database, 1, count=1)[0]).population == 2

    def test_always_left_and_emptied_by_voiding(self, database):
        made = answered(database, MIN_SESSIONS, always="left")
        populations.learn_if_due(database, study(database))
        state = database.read(lambda c: stored_learning.state(c, study(database).row.id))
        # Sides are random, so that whoever always takes one answers at random: nothing is learned, or next to nothing.
        if state.failure is None:
            found, _ = populations._newest_population(database, study(database))
            assert found is not None
            assert np.std(found.items.appeal) < 1.0
        else:
            assert "no more informative than random" in state.failure
        for one in made:
            database.write(lambda c, one=one: stored_sessions.mark(c, one, None, "void", "bored", "ann"))
        assert database.read(lambda c: stored_learning.count_finished(c, study(database).row.id)) == 0
        with pytest.raises(InvalidChoices):
            populations.fit(database, study(database), "ann")

    def test_a_study_with_coordinates_learns_too_if_asked(self, database):
        points = np.random.default_rng(0).normal(size=(10, 2))
        items = Items(points, ids=DOGS)
        for slug, settings in (("plain", {}), ("auto", {"learn": "auto"})):
            create_study(database, configuration(slug=slug, **settings), items, is_open=True, who="test")
        named = {slug: Catalogue(database).by_slug(slug) for slug in ("plain", "auto")}
        assert [one.configuration.learns(one.items.d) for one in named.values()] == [False, True]
        # The strategy asks the first people as well: the items have coordinates to search in.
        sessions = worker(database)
        for one in named.values():
            session_id, _ = sessions.open(one, {})
            query = sessions.state(sessions.by_id(session_id))["query"]["query"]
            sessions.answer(sessions.by_id(session_id), answer_to(query, "left", 500))
            assert queries(database, session_id)[0].kind == "strategy"


class TestRandomShare:
    def test_a_tenth_of_the_pairs_is_random_and_half_of_it_new(self):
        settings = configuration(answers=ANSWERS)
        found = []
        for seed in range(400):
            done = [AnsweredPair(f"p{i}", "strategy", "beagle", "boxer", "left") for i in range(3)]
            found.append(scheduled_pair(settings, ITEMS, seed, done, None, (9,), learned=True))
        random = [pair for pair in found if pair is not None]
        # 40 expected, with a standard deviation of 6.
        assert 18 < len(random) < 62
        assert RANDOM_SHARE == 0.1
        new = [pair for pair in random if "whippet" in (pair.left, pair.right)]
        assert all(pair.details["unmet"] for pair in new)
        assert 0.3 < len(new) / len(random) < 0.9
        assert all(pair.left != pair.right for pair in random)


class TestNewItems:
    def test_they_are_met_and_learned_and_sessions_keep_their_items(self, database):
        answered(database, MIN_SESSIONS)
        populations.learn_if_due(database, study(database))
        (before,) = answered(database, 1, count=4)
        sessions = worker(database)
        sessions.state(sessions.by_id(before))
        more = Items(ids=["akita", "samoyed"], labels=["Akita", "Samoyed"], data={"colour": ["#ffffff", "#000000"]})
        assert add_items(database, study(database), more, who="ann") == 12
        which = study(database)
        assert which.items.ids[-2:] == ("akita", "samoyed")
        assert which.items.data["text"][-1] == ""
        # The worker has read the items before, and finds the new ones.
        assert sessions.catalogue.by_slug("which").items.n == 12
        (after,) = answered(database, 1, count=2, seed=8)
        live = sessions.snapshot(sessions.by_id(after))
        assert live.parts.items.n == 12
        assert live.parts.unseen_rows == (10, 11)
        assert sessions.snapshot(sessions.by_id(before)).parts.items.n == 10
        assert worker(database).snapshot(sessions.by_id(before)).parts.items.n == 10

    @pytest.mark.parametrize("kind", ["file", "picture"])
    def test_one_item_alone_is_added_by_command(self, database, tmp_path, capsys, kind):
        path = tmp_path / "more"
        if kind == "file":
            path = tmp_path / "more.csv"
            path.write_text("id,label,text\nakita,Akita,Loyal.\n")
        else:
            path.mkdir()
            Image.new("RGB", (8, 8), "red").save(path / "akita.png")
        with pytest.raises(SystemExit) as left:
            cli.main(["study", "add", "which", str(path), "--database", str(tmp_path / "dogs.db")])
        assert (left.value.code, capsys.readouterr().out) == (0, "Added 1 item: the study which has 11.\n")
        assert (study(database).items.ids[-1], study(database).items.labels[-1]) == ("akita", "Akita")

    def test_added_twice_is_refused_and_nothing_is_lost(self, database):
        with pytest.raises(InvalidItems):
            add_items(database, study(database), Items(ids=["akita", "pug"]), who="ann")
        assert study(database).items.n == 10

    def test_a_study_with_coordinates_takes_none(self, database):
        items = Items(np.eye(5), ids=list("abcde"))
        create_study(database, configuration(slug="placed"), items, is_open=True, who="test")
        with pytest.raises(InvalidItems):
            add_items(database, Catalogue(database).by_slug("placed"), Items(ids=["x", "y"]), who="ann")

    def test_the_command(self, database, tmp_path, capsys):
        (tmp_path / "more.csv").write_text("id,label\nakita,Akita\nhound,Hound\n")
        with pytest.raises(SystemExit) as left:
            cli.main(["study", "add", "which", str(tmp_path / "more.csv"), "--database", str(tmp_path / "dogs.db")])
        assert left.value.code == 0
        assert "Added 2 items: the study which has 12." in capsys.readouterr().out


class TestPages:
    def test_dashboard_result_and_exports(self, tmp_path):
        with served(tmp_path / "b.db", studies=[(configuration(answers=ANSWERS, seed=5), ITEMS)]) as visitors:
            database = visitors.service.database
            set_password(database, "ann", "a long password")
            browser = visitors.browser(headers={"accept": "text/html"}, follow_redirects=True)
            page = browser.get("/login")
            browser.post("/login", data={"csrf": csrf_of(page), "name": "ann", "password": "a long password"})
            page = browser.get("/studies/which")
            assert "0 finished sessions count so far; the first version follows at 10" in page.text
            people = answered(database, MIN_SESSIONS)
            populations.learn_if_due(database, study(database))
            page = browser.get("/studies/which")
            assert "what most people like" in page.text
            assert re.search(r"Version 1 predicts \d+ % of the answers of 10 people", page.text)
            shown = browser.get(f"/studies/which/people/{people[0]}").text
            assert "would choose the item over a random other one" in shown
            for table in tables.TABLES:
                assert browser.get(f"/studies/which/export/{table}.csv").status_code == 200
            sent = {"items": ("more.csv", b"id,label\nakita,Akita\nhound,Hound\n", "text/csv")}
            reply = browser.post("/studies/which/items", data={"csrf": csrf_of(page)}, files=sent)
            assert reply.status_code == 200
            assert study(database).items.n == 12
            reply = browser.post("/studies/which/learning", data={"csrf": csrf_of(page), "learn": "off"})
            assert "Learn automatically" in reply.text
            reply = browser.post("/studies/which/learning", data={"csrf": csrf_of(page), "version": "0"})
            assert "Go back to it" in reply.text

            person = visitors.browser()
            start = person.get("/s/which")
            person.post("/s/which/start", data={"csrf": csrf_of(start)})
            state = person.get("/s/which/state").json()
            while state["query"] is not None:
                body = {"query": state["query"]["query"], "outcome": "left", "rt_ms": 500}
                state = person.post("/s/which/answer", json=body, headers={"X-Pairseek": "1"}).json()
            person.post("/s/which/finish", headers={"X-Pairseek": "1"})
            shown = person.get("/s/which/result", follow_redirects=True)
            assert shown.status_code == 200
            assert "first impression, based on your own answers and those of 10 people" in shown.text
            percents = [int(one) for one in re.findall(r'nearest-share">(\d+) %', shown.text)]
            assert len(percents) == 6
            assert percents == sorted(percents, reverse=True)

    def test_the_form_and_programs_say_whether_a_study_learns(self, tmp_path):
        with served(tmp_path / "f.db", studies=[(configuration(answers=ANSWERS), ITEMS)]) as visitors:
            service = visitors.service
            set_password(service.database, "ann", "a long password")
            browser = visitors.browser(headers={"accept": "text/html"}, follow_redirects=True)
            page = browser.get("/login")
            browser.post("/login", data={"csrf": csrf_of(page), "name": "ann", "password": "a long password"})
            page = browser.get("/studies/new")
            assert "If the items have no coordinates" in page.text
            dogs = b"id,label,text\na,Akita,Loyal\nb,Beagle,Merry\nc,Corgi,Loud\nd,Dachs,Long\n"
            placed = b"id,x\na,1\nb,2\nc,4\n"
            for slug, content, learn, learns in (
                ("plain", dogs, "", True),
                ("off", dogs, "off", False),
                ("placed", placed, "", False),
                ("auto", placed, "auto", True),
            ):
                fields = {"csrf": csrf_of(page), "title": slug, "answers": "5", "learn": learn}
                reply = browser.post("/studies/new", data=fields, files={"items": ("dogs.csv", content, "text/csv")})
                assert reply.status_code == 200, reply.text
                made = service.catalogue.by_slug(slug)
                assert made.configuration.learns(made.items.d) is learns
            wrong = {"csrf": csrf_of(page), "title": "wrong", "answers": "5", "learn": "sometimes"}
            reply = browser.post("/studies/new", data=wrong, files={"items": ("dogs.csv", dogs, "text/csv")})
            assert reply.status_code == 422
            assert "learn" in reply.text
            client = Client(visitors.address, make_token(service.database, "test", ["read", "write"], "test", None))
            things = [{"id": name, "text": name.upper()} for name in "abcd"]
            for slug, learn, learns in (("http", None, True), ("http-off", "off", False)):
                settings = {"title": "By HTTP", "slug": slug, "answers": 5, **({"learn": learn} if learn else {})}
                client.create_study(settings, things)
                made = service.catalogue.by_slug(slug)
                assert made.items.d == 0
                assert made.configuration.learns(made.items.d) is learns

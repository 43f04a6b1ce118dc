"""Data sets of comparisons: noise, simulated people, files of public sets, and the recorded people where they are."""

import hashlib
import itertools
import os
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

import pairseek as ps
from helpers.compared import rated
from helpers.refusals import refused
from pairseek.errors import InvalidChoices, InvalidItems, InvalidParameter
from pairseek.experiments.comparison.datasets import held_out, noise_scale, with_noise
from pairseek.experiments.comparison.public_sets import fetch_verified, read_jester
from pairseek.experiments.comparison.simulated import PEOPLE_KINDS, SimulatedPeople
from pairseek.experiments.comparison.sources import DATASET_NAMES, dataset_of

FOLDER = os.environ.get("PAIRSEEK_DATA", "")
needs_data = pytest.mark.skipif(not (Path(FOLDER) / "data" / "pairs").is_dir(), reason="PAIRSEEK_DATA has no pairs")


@pytest.fixture(scope="module", params=[0.75, 0.85])
def drawn(request):
    choices = rated(people=400, items=12, seed=5)
    return choices, request.param, [with_noise(choices, request.param, seed=seed) for seed in (0, 1)]


class TestNoise:
    def test_people_agree_with_themselves_as_often_as_was_asked_for(self, drawn):
        choices, agreement, (first, second) = drawn
        answers = [dict.fromkeys(_rows(noisy)) for noisy in (first, second)]
        unequal = [(p, frozenset((w, x))) for p, w, x in _rows(choices)]
        same = [
            ((p, *pair) in answers[0]) == ((p, *pair) in answers[1]) for p, pair in ((p, tuple(b)) for p, b in unequal)
        ]
        # 18,000 pairs: the standard error is 0.003.
        assert np.mean(same) == pytest.approx(agreement, abs=0.012)

    def test_equal_ratings_are_a_coin_and_far_ratings_are_not(self, drawn):
        choices, agreement, (noisy, _) = drawn
        value = np.full((len(choices.people), len(choices.ids)), np.nan)
        value[choices.ratings.person, choices.ratings.item] = choices.ratings.value
        apart = value[noisy.person, noisy.winner] - value[noisy.person, noisy.loser]
        equal = apart == 0
        assert equal.sum() == choices.ties
        assert np.mean(noisy.winner[equal] < noisy.loser[equal]) == pytest.approx(0.5, abs=0.03)
        scale = noise_scale(apart, agreement)
        for distance in (1.0, 2.0):
            held = np.abs(apart) == distance
            assert np.mean(apart[held] > 0) == pytest.approx(expit(scale * distance), abs=0.02)

    def test_every_pair_is_answered_and_ratings_stay_the_values(self, drawn):
        choices, _, (noisy, _) = drawn
        assert len(noisy) == len(choices) + choices.ties
        assert noisy.ties == 0
        assert noisy.ratings is choices.ratings
        assert np.all(np.diff(noisy.person) >= 0)

    def test_a_persons_answers_do_not_depend_on_who_else_is_there(self, drawn):
        choices, agreement, (noisy, _) = drawn
        # Reordered people have the same scale of noise.
        order = np.arange(len(choices.people))[::-1]
        again = with_noise(choices.only(order), agreement, seed=0)
        own = [noisy.person == 7, again.person == len(order) - 8]
        assert {(w, x) for w, x in zip(noisy.winner[own[0]], noisy.loser[own[0]], strict=True)} == {
            (w, x) for w, x in zip(again.winner[own[1]], again.loser[own[1]], strict=True)
        }

    @pytest.mark.parametrize("agreement", [0.5, 1.0, 2.0])
    def test_impossible_agreement_is_refused(self, agreement):
        with pytest.raises(InvalidParameter) as caught:
            with_noise(rated(), agreement)
        assert caught.value.field == "agreement"

    def test_pairs_and_equal_ratings_cannot_be_made_noisy(self):
        pairs = ps.Choices.from_pairs([("u", "a", "b")])
        with refused("agreement"):
            with_noise(pairs, 0.75)
        equal = ps.Choices.from_ratings([("u", "a", 1), ("u", "b", 1)])
        with pytest.raises(InvalidChoices):
            with_noise(equal, 0.75)


def _rows(choices):
    return zip(choices.person.tolist(), choices.winner.tolist(), choices.loser.tolist(), strict=True)


class TestSimulatedPeople:
    @pytest.mark.parametrize("kind", PEOPLE_KINDS)
    def test_utilities_are_as_wide_as_stated_and_answers_follow_them(self, kind):
        people = SimulatedPeople(kind, people=60, items=10, appeal=0.0, spread=2.0)
        _, utility = people.utilities()
        centred = utility - utility.mean(axis=1, keepdims=True)
        assert np.sqrt(np.mean(centred**2)) == pytest.approx(2.0)
        data = people.dataset("x")
        assert len(data.choices) == 60 * 45
        margin = utility[data.choices.person, data.choices.winner] - utility[data.choices.person, data.choices.loser]
        # 2700 answers; the expected share of likelier answers, within four standard errors of 0.008.
        expected = np.mean([expit(np.abs(row[:, None] - row)[np.triu_indices(10, 1)]).mean() for row in utility])
        assert np.mean(margin > 0) == pytest.approx(expected, abs=0.035)

    def test_groups_are_opposite_and_others_differ(self):
        _, utility = SimulatedPeople("groups", people=40, items=8, appeal=0.0).utilities()
        agreement = np.corrcoef(utility)
        assert np.allclose(np.abs(agreement), 1.0)
        assert agreement.min() < -0.99

    def test_unknown_kinds_and_sizes_are_refused(self):
        for settings, field in (({"people": 1}, "people"), ({"spread": -1.0}, "spread"), ({"kind": "x"}, "kind")):
            with pytest.raises(InvalidParameter) as caught:
                SimulatedPeople(**settings)
            assert caught.value.field == field


JESTER = """3,7.5,-10,99,0.25
4,1,2,3,4.5
"""


def colours_record(pairs, colours):
    files = {"pairs": pairs, "colours": colours}
    sources = {
        name: {"source": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
        for name, path in files.items()
    }
    return {"name": "colours", **sources}


class TestPublicSets:
    def test_jokes_are_read_as_ratings(self, tmp_path):
        path = tmp_path / "jester.csv"
        path.write_text(JESTER)
        choices = read_jester(path)
        assert choices.people == ("p1", "p2")
        assert choices.ids == ("joke 001", "joke 002", "joke 003", "joke 004")
        assert choices.ratings.value.tolist() == [7.5, -10.0, 0.25, 1.0, 2.0, 3.0, 4.5]
        assert read_jester(path, most_people=1).people == ("p1",)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("2,1,99,99,99\n", "announces 2 ratings, but there are 1: give a row for each person, without a header"),
            ("1,x,99,99,99\n", "'x' is not a number: give a row for each person, without a header"),
            ("1,11,99,99,99\n", "not from -10 to 10"),
            ("1,nan,99,99,99\n", "not from -10 to 10"),
            ("2,1,2\n", "expected 5 cells, received 3"),
        ],
    )
    def test_other_files_are_refused_with_the_line(self, tmp_path, text, message):
        (tmp_path / "x.csv").write_text(JESTER + text)
        with pytest.raises(InvalidChoices, match=f"line 3.*{message}"):
            read_jester(tmp_path / "x.csv")

    @pytest.mark.parametrize("form", [str, lambda text: text.replace(",", ";").replace("\n", "\r\n")])
    def test_colours_are_read_as_choices_with_vectors(self, tmp_path, form):
        pairs, colours = tmp_path / "pairs.csv", tmp_path / "colours.csv"
        pairs.write_text(form("person,left,right,winner,seconds\nu,red,blue,blue,2\nv,blue,grey,blue,1\n"), newline="")
        colours.write_text(form("id,L,a,b\nred,50,60,40\nblue,30,20,-60\ngrey,50,0,0\n"), newline="")
        data = dataset_of(colours_record(pairs, colours), tmp_path)
        assert data.choices.ids == ("red", "blue", "grey")
        assert (data.choices.winner.tolist(), data.choices.loser.tolist()) == ([1, 1], [0, 2])
        assert data.vectors[1].tolist() == [30.0, 20.0, -60.0]

    @pytest.mark.parametrize(
        ("pair_rows", "colour_rows", "message"),
        [
            ("", "id,L,a,b\nred,1,2,3\n", "pairs.csv is empty"),
            ("u,red,blue,blue\nv,red,blue,red\n", "id,L,a,b\nred,1,2,3\n", "expected .* or person,left,right,winner"),
            ("person,left,right,winner\nu,red,blue,left\n", "id,L,a,b\nred,1,2,3\n", "line 2, column 'winner'"),
            ("person,left,right,winner\nu,red,pink,red\n", "id,L,a,b\nred,1,2,3\nblue,4,5,6\n", "the 2 given: 'pink'"),
            ("person,left,right,winner\nu,red,blue,red\n", "red,1,2,3\nblue,4,5,6\n", "add a header row"),
            ("person,left,right,winner\nu,red,blue,red\n", "id,L,a,b\nred,1,inf,3\n", "'inf' is not a finite number"),
        ],
    )
    def test_other_colours_are_refused(self, tmp_path, pair_rows, colour_rows, message):
        pairs, colours = tmp_path / "pairs.csv", tmp_path / "colours.csv"
        pairs.write_text(pair_rows)
        colours.write_text(colour_rows)
        with pytest.raises((InvalidChoices, InvalidItems), match=message):
            dataset_of(colours_record(pairs, colours), tmp_path)

    def test_a_file_is_used_only_with_its_checksum(self, tmp_path):
        path = tmp_path / "jester.csv"
        path.write_text(JESTER)
        right = hashlib.sha256(path.read_bytes()).hexdigest()
        assert fetch_verified(str(path), right) == path
        with pytest.raises(InvalidChoices):
            fetch_verified(str(path), "0" * 64)
        for wrong in (None, "", "abc", "g" * 64):
            with refused("sha256") as caught:
                fetch_verified(str(path), wrong)
            assert caught.value.field == "sha256"
        record = {"name": "jester", "source": "jester.csv", "sha256": right, "agreement": 0.75}
        data = dataset_of(record, tmp_path)
        assert data.label == "jester"
        assert data.answers is not data.choices

    def test_a_download_is_verified_and_kept(self, tmp_path, monkeypatch):
        pooch = pytest.importorskip("pooch")
        served = tmp_path / "served.csv"
        served.write_text(JESTER)
        monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path / "cache")
        fetches = []

        def downloader(**_):
            def download(url, output, _):
                fetches.append(url)
                Path(output).write_bytes(served.read_bytes())

            return download

        monkeypatch.setattr(pooch, "HTTPDownloader", downloader)
        right = hashlib.sha256(served.read_bytes()).hexdigest()
        for _ in range(2):
            assert fetch_verified("https://example.org/jester.csv", right).read_text() == JESTER
        assert fetches == ["https://example.org/jester.csv"]
        with pytest.raises(InvalidChoices):
            fetch_verified("https://example.org/other.csv", "0" * 64)


class TestSources:
    def test_files_of_ones_own(self, tmp_path):
        rows = [
            f"{who},{item},{(row * 7 + place) % 5}"
            for row, who in enumerate("abcdef")
            for place, item in enumerate("xyz")
        ]
        (tmp_path / "ratings.csv").write_text("\n".join(["person,item,rating", *rows]) + "\n")
        (tmp_path / "items.csv").write_text("id,p,q\nz,1,2\ny,0,1\nx,3,1\n")
        data = dataset_of({"name": "file", "path": "ratings.csv", "items": "items.csv", "answers": [0, 2]}, tmp_path)
        assert data.choices.ids == ("z", "y", "x")
        assert data.vectors.tolist() == [[1, 2], [0, 1], [3, 1]]
        assert data.counts == (0, 2)
        assert data.bound
        noisy = dataset_of({"name": "file", "path": "ratings.csv", "agreement": 0.75, "label": "noisy"}, tmp_path)
        assert (noisy.label, noisy.bound) == ("noisy", False)
        assert noisy.hash != dataset_of({"name": "file", "path": "ratings.csv"}, tmp_path).hash

    @pytest.mark.parametrize(
        ("record", "message"),
        [
            ({"name": "file", "path": "missing.csv"}, "there is no file"),
            ({"name": "simulated", "sort": "linear"}, "unknown field 'sort'"),
            ({"name": "simulated", "kind": "linaer"}, "did you mean"),
            ({"path": "x.csv"}, "data is None"),
            ({"name": "jester"}, "has no source|missing"),
        ],
    )
    def test_records_that_cannot_be_are_refused(self, tmp_path, record, message):
        with pytest.raises((InvalidParameter, TypeError), match=message):
            dataset_of(record, tmp_path)

    def test_without_the_folder_of_people_the_error_says_how_to_name_it(self, monkeypatch):
        monkeypatch.delenv("PAIRSEEK_DATA", raising=False)
        with refused("data"):
            dataset_of("music", Path())

    @needs_data
    @pytest.mark.parametrize("name", [name for name in DATASET_NAMES if not name.startswith("simulated")])
    def test_recorded_people_are_divided_without_a_leak(self, name):
        data = dataset_of(name, Path())
        held = held_out(data, 10, half="reporting", seed=0)
        owner = dict(zip(data.choices.people, data.owners, strict=True))
        assert len(held.people) == 10
        assert not {owner[who] for who in held.others.people} & set(held.people)
        for session in data.sessions(held.people[0], 0):
            hidden = {
                frozenset(p)
                for p in zip(session.winner[session.withheld], session.loser[session.withheld], strict=True)
            }
            assert hidden
            assert not hidden & {frozenset(p) for p in session.askable.tolist()}

    @needs_data
    def test_a_sitting_is_a_complete_comparison_of_one_listener(self):
        data = dataset_of("sound", Path())
        assert len(set(data.owners)) == 40
        assert len(data.choices.people) == 783
        sessions = data.sessions("04", 0)
        assert len(sessions) == 5
        assert {int(s.withheld.sum()) for s in sessions} == {5, 6}
        assert {len(s) for s in sessions} == {28}
        assert all(np.isfinite(s.value).all() for s in sessions)

    @needs_data
    def test_all_folds_together_predict_each_pair_once(self):
        data = dataset_of("first names", Path())
        pairs = [
            frozenset(p)
            for s in data.sessions("0", 0)
            for p in zip(s.winner[s.withheld], s.loser[s.withheld], strict=True)
        ]
        assert sorted(map(sorted, pairs)) == sorted(map(list, itertools.combinations(range(6), 2)))

"""Recorded choices: pairs, rankings and ratings, in memory and in files."""

import itertools
import json
import math
import zipfile

import numpy as np
import pytest

import pairseek as ps
from pairseek.errors import InvalidChoices
from pairseek.people.implied_pairs import pair_weight


def rows(choices):
    return [
        (choices.people[p], choices.ids[a], choices.ids[b])
        for p, a, b in zip(choices.person, choices.winner, choices.loser, strict=True)
    ]


def ties(choices):
    return [(choices.people[p], choices.ids[a], choices.ids[b]) for p, a, b in choices.tied]


class TestPairs:
    def test_the_rows_of_a_person_are_contiguous_and_in_their_original_order(self):
        choices = ps.Choices.from_pairs([("u", "a", "b"), ("v", "b", "c"), ("u", "c", "a"), ("u", "b", "a")])
        assert rows(choices) == [("u", "a", "b"), ("u", "c", "a"), ("u", "b", "a"), ("v", "b", "c")]
        assert choices.starts.tolist() == [0, 3, 4]
        assert choices.weight.tolist() == [1.0] * 4

    @pytest.mark.parametrize(
        ("pairs", "ids", "message"),
        [
            ([("u", "a", "b"), ("u", "b", "b")], None, "row 1: person 'u' chose 'b' over itself"),
            ([("u", "a", "z")], ["a", "b"], "items that are not in ids: 'z'"),
            ([("ann", "tea", "milk")], ["tea", "tea", "milk"], "ids contains 'tea' more than once"),
            ([], None, "contain no people"),
        ],
    )
    def test_impossible_choices_are_rejected_by_name(self, pairs, ids, message):
        with pytest.raises(InvalidChoices, match=message):
            ps.Choices.from_pairs(pairs, ids=ids)


class TestRatingsAndRankings:
    def test_different_ratings_make_pairs_and_equal_ones_make_ties(self):
        choices = ps.Choices.from_ratings([("u", "a", 5), ("u", "b", 3), ("u", "c", 3), ("v", "a", 2)])
        assert rows(choices) == [("u", "a", "b"), ("u", "a", "c")]
        assert choices.ties == 1
        assert ties(choices) == [("u", "b", "c")]
        assert choices.unusable == ("v",)
        assert choices.notes == (
            "1 person has no usable pair (one item only, or all items tied) and will be ignored: 'v'",
        )

    def test_a_ranking_equals_the_ratings_it_implies(self):
        ranked = ps.Choices.from_rankings({"u": [["b"], ["a", "d"], ["c"]]})
        rated = ps.Choices.from_ratings([("u", "b", 9), ("u", "a", 4), ("u", "d", 4), ("u", "c", 1)])
        assert set(rows(ranked)) == set(rows(rated))
        assert ranked.ties == 1
        assert np.array_equal(ranked.weight, rated.weight)

    @pytest.mark.parametrize("n", [2, 3, 6])
    def test_pairs_of_a_ranking_have_the_information_of_the_ranking(self, n):
        """The Fisher information of Plackett and Luce's likelihood at equal utilities, over all orders."""
        information = np.zeros((n, n))
        for order in itertools.permutations(range(n)):
            score = np.zeros(n)
            for place in range(n):
                score[order[place]] += 1.0
                score[list(order[place:])] -= 1.0 / (n - place)
            information += np.outer(score, score) / math.factorial(n)
        pairs = n * (n - 1) // 2
        # All pairs have the information (n I - 11')/4 at equal utilities.
        assert information == pytest.approx(pair_weight(n, pairs) * (n * np.eye(n) - 1.0) / 4.0)
        choices = ps.Choices.from_rankings({"u": [f"i{row}" for row in range(n)]})
        assert np.all(choices.weight == pair_weight(n, pairs))

    def test_ties_do_not_move_their_weight_to_decided_pairs(self):
        strict = ps.Choices.from_rankings({"u": ["a", "b", "c", "d"]})
        tied = ps.Choices.from_rankings({"u": ["a", ["b", "c"], "d"]})
        assert np.all(tied.weight == strict.weight[0])

    def test_many_ratings_are_subsampled_and_keep_their_total_weight(self):
        n = 200
        choices = ps.Choices.from_ratings([("u", i, i) for i in range(n)], most=500, rng=3)
        assert 400 < len(choices) <= 500
        assert choices.weight.sum() == pytest.approx(2 * (n - np.sum(1 / np.arange(1, n + 1))))
        assert np.all(choices.winner > choices.loser)
        again = ps.Choices.from_ratings([("u", i, i) for i in range(n)], most=500, rng=3)
        assert again.hash == choices.hash

    def test_ties_follow_their_people_and_items(self):
        choices = ps.Choices.from_pairs(
            [("u", "a", "b"), ("w", "c", "a")], tied=[("w", "b", "c"), ("u", "c", "a"), ("v", "a", "b")]
        )
        assert choices.people == ("u", "w", "v")
        assert ties(choices) == [("u", "c", "a"), ("w", "b", "c"), ("v", "a", "b")]
        assert choices.unusable == ()
        assert ties(choices.only([2, 1])) == [("v", "a", "b"), ("w", "b", "c")]
        assert ties(choices.usable()) == ties(choices)
        assert ties(choices.of_items(["d", "c", "b", "a"])) == ties(choices)

    @pytest.mark.parametrize(
        ("make", "words"),
        [
            (lambda: ps.Choices.from_ratings([("u", "a", 1), ("u", "a", 2)]), "person 'u' rates 'a' twice"),
            (lambda: ps.Choices.from_ratings([("u", "a", np.nan)]), "person 'u' rates 'a' nan; give a finite number"),
            (lambda: ps.Choices.from_rankings({"u": [["a"], ["b", "a"]]}), "person 'u' ranks 'a' twice"),
            (lambda: ps.Choices.from_rankings([("u", [["a"]]), ("u", [["b"]])]), "person 'u' has two rankings"),
        ],
    )
    def test_contradictions_are_rejected_by_name(self, make, words):
        with pytest.raises(InvalidChoices, match=words):
            make()

    def test_people_and_items_can_be_selected(self):
        choices = ps.Choices.from_pairs([("u", "a", "b"), ("v", "b", "c"), ("w", "c", "a")])
        assert rows(choices.only([2, 0])) == [("w", "c", "a"), ("u", "a", "b")]
        assert rows(choices.of_items(["d", "c", "b", "a"])) == rows(choices)
        with pytest.raises(InvalidChoices, match=r"not among the 2 given: 'c'"):
            choices.of_items(["a", "b"])


def written(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


class TestFiles:
    def test_ratings(self, tmp_path):
        path = written(tmp_path, "r.csv", "person,item,rating\n1,tea,5\n1,coffee,2.5\n2,tea,1\n2,coffee,4\n")
        assert rows(ps.Choices.read(path)) == [("1", "tea", "coffee"), ("2", "coffee", "tea")]

    def test_pairs_with_sides_and_times_and_a_tie(self, tmp_path):
        text = (
            "person,winner,loser,left,right,rt_ms\n1,tea,coffee,coffee,tea,812\n1,,,tea,milk,\n2,milk,tea,milk,tea,\n"
        )
        choices = ps.Choices.read(written(tmp_path, "p.csv", text))
        assert rows(choices) == [("1", "tea", "coffee"), ("2", "milk", "tea")]
        assert ties(choices) == [("1", "tea", "milk")]

    def test_preflib(self, tmp_path):
        text = (
            "# FILE NAME: x.toc\n# NUMBER ALTERNATIVES: 3\n# ALTERNATIVE NAME 1: tea\n# ALTERNATIVE NAME 2: milk\n"
            "# ALTERNATIVE NAME 3: rum\n2: 3,{1,2}\n1: 1,2,3\n"
        )
        choices = ps.Choices.read(written(tmp_path, "x.toc", text))
        assert choices.people == ("6.1", "6.2", "7")
        assert set(rows(choices.only([0]))) == {("6.1", "rum", "tea"), ("6.1", "rum", "milk")}
        assert set(rows(choices.only([2]))) == {("7", "tea", "milk"), ("7", "tea", "rum"), ("7", "milk", "rum")}
        assert choices.ties == 2

    def test_a_partial_order_compares_what_was_ranked(self, tmp_path):
        names = "".join(f"# ALTERNATIVE NAME {i}: item {i}\n" for i in (1, 2, 3))
        choices = ps.Choices.read(written(tmp_path, "x.soi", f"{names}1: 3,1\n"))
        assert rows(choices) == [("4", "item 3", "item 1")]
        assert choices.uncompared == ("item 2",)

    def test_a_bundle(self, tmp_path):
        items = ps.Items([[0.0], [1.0], [2.0]], ids=["a", "b", "c"])
        header = "session,simulated,left,right,winner,loser,outcome,kind,undone,void\n"
        lines = [
            "s1,false,a,b,a,b,left,strategy,false,false",
            "s1,false,a,c,c,a,right,repeated,false,false",
            "s1,false,a,c,a,c,left,strategy,true,false",
            "s1,false,a,b,a,b,left,attention,false,false",
            "s1,false,a,b,,,tie,random,false,false",
            "s1,false,a,b,,,skip,random,false,false",
            "s2,false,b,c,b,c,left,strategy,false,true",
            "s3,true,b,c,b,c,left,strategy,false,false",
        ]
        path = tmp_path / "study.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("answers.csv", header + "\n".join(lines) + "\n")
            archive.writestr("items.json", json.dumps(items.record()))
        choices = ps.Choices.read(path)
        assert rows(choices) == [("s1", "a", "b"), ("s1", "c", "a")]
        assert choices.ids == items.ids
        assert ties(choices) == [("s1", "a", "b")]

    def test_sides_and_winner_give_the_loser(self, tmp_path):
        path = tmp_path / "sides.csv"
        path.write_text("winner,person,right,left\na,s1,b,a\nb,s1,b,c\n,s2,a,b\n")
        choices = ps.Choices.read(path)
        assert rows(choices) == [("s1", "a", "b"), ("s1", "b", "c")]
        assert ties(choices) == [("s2", "b", "a")]

    @pytest.mark.parametrize(
        ("name", "text", "words"),
        [
            ("r.csv", "person,item,rating\n1,tea,good\n", r"line 2, column 'rating': 'good' is not a finite number"),
            ("r.csv", "person,item,rating\n1,tea,5\n1,,4\n", r"line 3, column 'item': it is empty"),
            ("r.csv", "person,item,rating\n1,tea,5\n1,tea,4\n", r"line 3, column 'item': .* already .* in line 2"),
            ("r.csv", "person,item,rating\n1,tea\n", r"line 2: expected 3 cells, received 2"),
            ("r.csv", "person,item,rating\n", "has a header but no rows"),
            ("r.csv", "", "is empty"),
            ("r.csv", "who,what\n1,2\n", r"has the columns who, what: expected person,item,rating or person,winner"),
            ("p.csv", "person,winner,loser\n1,tea,tea\n", r"line 2, column 'loser': 'tea' is also the winner"),
            ("p.csv", "person,winner,loser\n1,,tea\n", r"line 2, column 'winner': it is empty"),
            (
                "p.csv",
                "person,winner,loser,left,right\n1,a,b,a,c\n",
                r"line 2, column 'winner': .* columns left and right",
            ),
            ("p.csv", "person,left,right,winner\n1,a,b,c\n", r"line 2, column 'winner': 'c'.* columns left and right"),
            ("p.csv", "person,left,right,winner\n1,a,a,a\n", r"line 2, column 'right': 'a' is also the left item"),
            ("p.csv", "person,winner,loser,rt_ms\n1,a,b,soon\n", r"line 2, column 'rt_ms': 'soon' is not a time"),
            ("x.soc", "# ALTERNATIVE NAME 1: a\n1: 1,7\n", r"line 2, column 6: '7' is not one of the 1 alternatives"),
            ("x.soc", "# ALTERNATIVE NAME 1: a\nmany: 1\n", r"line 2, column 1: 'many' is not a number of people"),
            ("x.soc", "# ALTERNATIVE NAME 1: a\n1: {1}\n", r"line 2, column 4: '\{1\}' is a tie, and .soc files"),
            ("x.toc", "# ALTERNATIVE NAME 1: a\n1: 1,{1\n", r"line 2, column 6: '\{1' is not an alternative"),
            ("x.soi", "# ALTERNATIVE NAME 1: a\n1: 1,1\n", r"line 2, column 6: 'a' is ranked twice"),
            ("x.soi", "# ALTERNATIVE NAME 1: a\n1: ²\n", r"line 2, column 4: '²' is not one of the 1 alternatives"),
            ("x.soi", "# ALTERNATIVE NAME 1: a\n²: 1\n", "line 2, column 1: '²' is not a number of people"),
            ("x.soi", "# ALTERNATIVE NAME 1: a\n", "contains no rankings"),
            ("x.doc", "", r"unknown extension '\.doc'"),
            ("x.zip", "no zip", "cannot be read as a bundle"),
        ],
    )
    def test_errors_name_file_line_and_column(self, tmp_path, name, text, words):
        path = written(tmp_path, name, text)
        with pytest.raises(InvalidChoices, match=words) as caught:
            ps.Choices.read(path)
        assert str(path) in str(caught.value)

    def test_a_bundle_with_only_simulated_people_is_rejected(self, tmp_path):
        path = tmp_path / "study.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(
                "answers.csv",
                "session,simulated,left,right,winner,loser,outcome,kind,undone,void\n"
                "s1,true,a,b,a,b,left,strategy,false,false\n",
            )
        with pytest.raises(InvalidChoices):
            ps.Choices.read(path)

    def test_single_items_need_no_groups_in_a_ranking(self):
        plain = ps.Choices.from_rankings({"ann": ["tea", "milk", 3]})
        grouped = ps.Choices.from_rankings({"ann": [["tea"], ("milk",), [3]]})
        assert rows(plain) == rows(grouped) == [("ann", "tea", "milk"), ("ann", "tea", 3), ("ann", "milk", 3)]

    @pytest.mark.parametrize("rating", ["good", None, float("nan"), True])
    def test_ratings_must_be_finite_numbers(self, rating):
        with pytest.raises(InvalidChoices):
            ps.Choices.from_ratings([("ann", "tea", rating)])

    @pytest.mark.parametrize("name", ["r.csv", "x.soc", "x.zip"])
    def test_a_missing_file_is_reported(self, tmp_path, name):
        with pytest.raises(InvalidChoices):
            ps.Choices.read(tmp_path / name)

    def test_the_shared_ratings_are_read(self, shared):
        if shared is None:
            # The same shape by hand: 5 levels, everybody rates some.
            rng = np.random.default_rng(0)
            choices = ps.Choices.from_ratings(
                (p, i, int(rng.integers(1, 6))) for p in range(30) for i in rng.permutation(18)[:15].tolist()
            )
            assert len(choices.people) == 30
            assert not choices.unusable
            return
        choices = ps.Choices.read(shared / "data" / "people" / "gss_music" / "ratings.csv")
        assert (len(choices.people), len(choices.ids)) == (1585, 18)
        # Six people gave all items the same rating, which tells what they like too.
        assert choices.unusable == ("621",)
        assert len(choices.ratings) == 26694

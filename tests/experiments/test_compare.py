"""Comparison of methods: what each is shown, what it does wrong, and the same table from any number of processes."""

import csv
import itertools
import sys
from dataclasses import replace

import numpy as np
import pytest

import pairseek as ps
from helpers.compared import NOTES, Coin, Faulty, GlobalDice, NoPredict, Spy, rated
from helpers.refusals import refused
from pairseek.cli import app as _app
from pairseek.errors import InvalidChoices, InvalidParameter, MissingExtra
from pairseek.experiments import Comparison, compare, read_comparison
from pairseek.experiments.comparison.comparison import ComparisonWork, outcome_of, replay_person
from pairseek.experiments.comparison.datasets import Dataset, half_of, held_out
from pairseek.experiments.comparison.entries import EXTRA_METHODS, FIRST_METHODS, Entry, entry_of
from pairseek.experiments.comparison.measures import COLUMNS
from pairseek.experiments.comparison.methods.linear_taste import LinearTaste
from pairseek.experiments.comparison.person import Person
from pairseek.experiments.comparison.protocol import KNOWLEDGE, BaseMethod
from pairseek.experiments.comparison.replay import MethodFault, begin, play, without_watch
from pairseek.experiments.comparison.report import _body
from pairseek.experiments.comparison.results import ComparisonResults, Fault
from pairseek.experiments.comparison.simulated import SimulatedPeople
from pairseek.experiments.comparison.sources import dataset_of
from pairseek.experiments.runs.plan import Task

FURTHER = ("item neighbours", "EASE", "question tree", "GLIS")
# Methods by the package that they need.
INSTALLED = {
    "choix I-LSR": "choix",
    "choix EP": "choix",
    "ALS": "implicit",
    "Qdrant average": "qdrant_client",
    "Qdrant best score": "qdrant_client",
    "Qdrant context": "qdrant_client",
    "Qdrant feedback": "qdrant_client",
    **dict.fromkeys([label for label in EXTRA_METHODS if label.startswith("BoTorch")], "botorch"),
}
TABLES = ("summary.csv", "differences.csv", "people.csv", "faults.csv")


@pytest.fixture(scope="module")
def dataset():
    choices = rated()
    vectors = np.random.default_rng(1).normal(size=(len(choices.ids), 2))
    return Dataset("rated", choices, choices, counts=(0, 2, 5), vectors=vectors)


def held_of(dataset, people=4, half="reporting"):
    return held_out(dataset, people, half=half, seed=0)


def replay(entry, held, unit=0, seed=0):
    """Replay in this process; return what was sent."""
    sent = []
    ComparisonWork((entry,), (held,), seed, 60.0).perform(Task(0, 0, unit), sent.append)
    return sent


class TestWhatAMethodIsShown:
    @pytest.fixture(params=KNOWLEDGE)
    def seen(self, request, dataset):
        NOTES.clear()
        held = held_of(dataset)
        replay(Entry("spy", Spy, {"knows": request.param}), held)
        return request.param, held, list(NOTES)

    def test_it_is_shown_what_it_may_know_and_nothing_else(self, seen):
        knows, held, notes = seen
        (_, items, vectors, others), *_ = (note for note in notes if note[0] == "begin")
        assert items == held.others.ids
        assert (vectors is not None) == (knows != "nothing")
        assert (others is not None) == (knows == "others")
        if others is not None:
            assert not set(others.people) & set(held.people)

    def test_withheld_pairs_are_never_allowed_and_no_answer_is_to_be_seen(self, seen):
        _, held, notes = seen
        (person,) = held.dataset.sessions(held.people[0], 0)
        hidden = {
            frozenset(pair) for pair in zip(person.winner[person.withheld], person.loser[person.withheld], strict=True)
        }
        allowed = [note[1] for note in notes if note[0] == "ask"]
        assert len(allowed) == 5
        assert [len(pairs) for pairs in allowed] == [len(person.askable) - step for step in range(5)]
        assert not hidden & {frozenset(pair) for pairs in allowed for pair in pairs.tolist()}
        checked_predictions = next(note[1] for note in notes if note[0] == "predict")
        assert {frozenset(pair) for pair in checked_predictions.tolist()} == hidden
        # Sides and order follow from the items alone.
        for pairs in (*allowed, checked_predictions):
            assert np.all(pairs[:, 0] < pairs[:, 1])
        assert checked_predictions.tolist() == sorted(checked_predictions.tolist())
        # The answers that it is told are those of the data.
        winners = {frozenset(pair): pair[0] for pair in person.askable.tolist()}
        assert all(outcome == winners[frozenset(pair)] for kind, pair, outcome in _told(notes))

    def test_what_a_method_does_to_its_arguments_reaches_nobody_else(self, dataset):
        class Vandal(BaseMethod):
            knows = "vectors"

            def begin(self, items, vectors, others):
                vectors[:] = 0.0

            def predict(self, pairs):
                pairs[:] = 0
                return np.full(len(pairs), 0.5)

        held = held_of(dataset)
        before = replay(Entry("coin", Coin), held)
        replay(Entry("vandal", Vandal), held)
        after = replay(Entry("coin", Coin), held)
        assert np.any(held.dataset.vectors != 0.0)
        rows = [[message[3][0] for message in sent if message[0] == "row"] for sent in (before, after)]
        assert rows[0] == rows[1]

    def test_all_methods_see_the_same_pairs_in_the_same_random_order(self, dataset):
        held = held_of(dataset)
        orders = []
        for unit in (0, 0, 1):
            NOTES.clear()
            replay(Entry("spy", Spy), held, unit)
            orders.append(next(note[1].tolist() for note in NOTES if note[0] == "ask"))
        assert orders[0] == orders[1] != sorted(orders[0])

    def test_several_rows_of_a_person_are_one_person(self):
        choices = rated(people=40)
        owners = tuple(f"owner {row // 4}" for row in range(40))
        data = Dataset("sittings", choices, choices, persons=owners, counts=(0, 2), vectors=np.eye(9), folds=3)
        held = held_out(data, 3, half="reporting", seed=0)
        assert all(half_of(name) == "reporting" for name in held.people)
        rows = {name for name, owner in zip(choices.people, owners, strict=True) if owner in held.people}
        assert len(rows) == 12
        assert not rows & set(held.others.people)
        assert len(data.sessions(held.people[0], 0)) == 3

    def test_who_chooses_settings_sees_nothing_of_the_other_half(self, dataset):
        held = held_out(dataset, 4, half="choosing", seed=0)
        assert {half_of(name) for name in (*held.people, *held.others.people)} == {"choosing"}
        reported = held_out(dataset, 4, half="reporting", seed=0)
        assert {half_of(name) for name in reported.people} == {"reporting"}
        assert {half_of(name) for name in reported.others.people} == {"choosing", "reporting"}

    def test_folds_withhold_each_pair_once_and_the_same_for_everybody(self):
        choices = ps.Choices.from_rankings({who: list("abcdef") for who in "xyz"})
        withheld = {}
        for row in range(3):
            people = [Person.of(choices, row, fold=(fold, 5)) for fold in range(5)]
            assert [person.withheld.sum() for person in people] == [3] * 5
            assert np.sum([person.withheld for person in people], axis=0).tolist() == [1] * 15
            withheld[row] = [person.withheld.tolist() for person in people]
        assert withheld[0] == withheld[1] == withheld[2]

    def test_too_few_people_are_refused(self):
        choices = rated(people=2)
        with pytest.raises(InvalidChoices):
            held_out(Dataset("few", choices, choices), 3, half="reporting", seed=0)


def _told(notes):
    return [note for note in notes if note[0] == "tell"]


FAULTS = {
    "begin": ("raises", "begin raised OSError: no such file"),
    "raise": ("raises", "ask raised ValueError: a reason (compared.py, line "),
    "nan": ("not a number", "NaN for the pair"),
    "short": ("not a number", "shape"),
    "words": ("not a number", "predict returned 'words'"),
    "above": ("no probability", "returned 1 for the pair"),
    "below": ("no probability", "returned -0.25 for the pair"),
    "asked before": ("not allowed", "which is not one of the"),
    "itself": ("not allowed", "which is not one of the"),
    "none": ("not allowed", "ask returned None"),
    "fractions": ("not allowed", "which is not one of the"),
    "twice": ("not allowed", "recommend returned"),
    "unknown item": ("not allowed", "recommend returned"),
}


class TestFaults:
    @pytest.mark.parametrize("fault", FAULTS)
    def test_each_is_recognized_and_says_when(self, dataset, fault):
        with pytest.raises(MethodFault) as caught:
            replay(Entry("faulty", Faulty, {"fault": fault}), held_of(dataset))
        assert caught.value.kind == FAULTS[fault][0]
        assert caught.value.step == (0 if fault == "begin" else 2)
        assert FAULTS[fault][1] in str(caught.value)

    def test_a_withheld_pair_cannot_be_asked(self, dataset):
        person = Person.of(dataset.answers, 0)
        hidden = int(np.flatnonzero(person.withheld)[0])

        class Cheat(Coin):
            def ask(self, allowed):
                return person.winner[hidden], person.loser[hidden]

        with pytest.raises(MethodFault, match="not one of"):
            list(play(Cheat(), person, (0, 1), key=[0], watch=without_watch))

    def test_after_a_fault_nothing_is_counted_and_before_it_everything(self):
        row = ((1.0,) * len(COLUMNS), 0.5)
        rows = {(0, 0): row, (0, 1): row, (0, 2): row, (1, 0): row}
        outcome = outcome_of(Task(0, 0, 0), rows, 3, "a fault")
        assert np.isfinite(np.array(outcome.values)[:, 0]).tolist() == [True, False, False]
        # The bins of two sessions add up, and scores are averaged.
        assert outcome.values[0] == (1.0,) * 4 + (2.0,) * 30
        # Without a fault the second session had fewer pairs.
        assert np.isfinite(np.array(outcome_of(Task(0, 0, 0), rows, 3).values)[:, 0]).all()

    def test_they_are_named_in_the_report_and_the_others_go_on(self, dataset, tmp_path):
        broken = [Entry(fault, Faulty, {"fault": fault}) for fault in ("loop", "sleep", "exit", "raise", "nan")]
        plan = Comparison([Coin, *broken, "popularity"], [dataset], people=1, limit=3.0)
        results = compare(plan, tmp_path / "x")
        kinds = {fault.method: fault.kind for fault in results.faults}
        assert kinds == {"loop": "hangs", "sleep": "hangs", "exit": "dies", "raise": "raises", "nan": "not a number"}
        assert {(fault.person, fault.step) for fault in results.faults} == {(results.held[0].people[0], 2)}
        reached = {
            method: np.isfinite(results.scores("rated", method, "accuracy")).tolist() for method in results.methods
        }
        assert reached["Coin"] == reached["popularity"] == [[True, True, True]]
        # A prediction that is no number is noticed at the count, a question on the way to the next.
        assert reached["loop"] == reached["sleep"] == reached["exit"] == reached["raise"] == [[True, True, False]]
        assert reached["nan"] == [[True, False, False]]
        with (tmp_path / "x" / "faults.csv").open() as file:
            assert {row["method"] for row in csv.DictReader(file)} == set(kinds)
        # The folder remembers them, and nothing is run again.
        assert compare(plan, tmp_path / "x").faults == results.faults

    @pytest.mark.parametrize(
        ("record", "message"),
        [
            (NoPredict, "has no predict"),
            ("Gausian", "did you mean|use one of"),
            ({"method": "nowhere:Class"}, "cannot be imported"),
            ({"method": "math:pi"}, "is not a class"),
            ({"label": "x"}, "give the label of a method"),
            ({"method": "gaussian", "wrong": 1}, "unexpected keyword"),
            ({"method": "gaussian", "questions": "wrong"}, "use one of random, information, eubo"),
            ({"method": "helpers.compared:Spy", "knows": "everything"}, "use one of nothing, vectors, others"),
        ],
    )
    def test_a_method_that_cannot_be_is_refused_at_once(self, record, message):
        with pytest.raises(InvalidParameter, match=message):
            Comparison([record], ["simulated points"])


@pytest.fixture(scope="module")
def plan(dataset):
    simulated = {"name": "simulated", "kind": "linear", "people": 24, "items": 6, "label": "linear"}
    methods = ["popularity", "Gaussian, information", "factor analysis", "logistic, BALD", Coin, GlobalDice]
    return Comparison(methods, [dataset, simulated], people=6, answers=(0, 2, 5), seed=3)


@pytest.fixture(scope="module")
def once(plan, tmp_path_factory):
    folder = tmp_path_factory.mktemp("once") / "x"
    return folder, compare(plan, folder)


class TestTables:
    def test_two_processes_write_the_same_tables(self, plan, once, tmp_path):
        compare(plan, tmp_path / "x", jobs=2)
        for name in TABLES:
            assert (tmp_path / "x" / name).read_bytes() == (once[0] / name).read_bytes()

    @pytest.mark.slow
    @pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
    def test_a_cluster_writes_the_same_tables(self, plan, once, tmp_path):
        distributed = pytest.importorskip("distributed")
        with distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster:
            compare(plan, tmp_path / "x", scheduler=cluster.scheduler_address)
        for name in TABLES:
            assert (tmp_path / "x" / name).read_bytes() == (once[0] / name).read_bytes()

    def test_an_interrupted_run_goes_on_to_the_same_tables(self, plan, once, tmp_path):
        part = tmp_path / "x"
        part.mkdir()
        for name in ("run.json", "specification.toml"):
            (part / name).write_bytes((once[0] / name).read_bytes())
        lines = (once[0] / "trials.jsonl").read_bytes().splitlines(keepends=True)
        (part / "trials.jsonl").write_bytes(b"".join(lines[:30]) + lines[30][:9])
        done = []
        compare(plan, part, progress=lambda status: done.append(sum(status.done)))
        assert (done[0], done[-1]) == (30, len(lines))
        for name in TABLES:
            assert (part / name).read_bytes() == (once[0] / name).read_bytes()

    def test_faults_of_many_people_share_a_line_and_are_shown_as_text(self, once):
        _, results = once
        faults = [Fault("linear", "Coin", f"p{n}", n, "raises", "<script>x</script>") for n in range(1, 6)]
        faulty = replace(results, faults=(*faults, Fault("linear", "GlobalDice", "p1", 0, "hangs", "ask")))
        assert faulty.fault_lines() == [
            "Coin on linear: raises for 'p1' after 1 answer, 'p2' after 2 answers, 'p3' after 3 answers and 2 more "
            "people: <script>x</script>",
            "GlobalDice on linear: hangs for 'p1' after 0 answers: ask",
        ]
        page = "".join(_body(faulty))
        assert "<script>" not in page
        assert "Coin (5 failed)" in page

    def test_another_seed_is_another_comparison(self, plan, once):
        with pytest.raises(InvalidParameter):
            compare(Comparison(plan.methods, plan.data, people=6, answers=(0, 2, 5), seed=4), once[0])

    def test_replays_of_other_folders_are_reused(self, plan, once, tmp_path):
        part = replace(plan, methods=(GlobalDice, "popularity"), data=plan.data[::-1])
        first = compare(part, tmp_path / "first")
        done = []
        results = compare(plan, tmp_path / "x", reuse=[tmp_path / "first"], progress=lambda s: done.append(s.done))
        assert done[0] == tuple(12 if method in part.methods else 0 for method in plan.methods)
        assert first.labels == results.labels[::-1]
        for name in TABLES:
            assert (tmp_path / "x" / name).read_bytes() == (once[0] / name).read_bytes()

    def test_replays_with_another_seed_are_not_reused(self, plan, once, tmp_path):
        for other, folder, message in (
            (replace(plan, seed=4), once[0], "has another seed"),
            (plan, tmp_path / "nowhere", "does not hold readable results"),
        ):
            with pytest.raises(InvalidParameter, match=message):
                compare(other, tmp_path / "x", reuse=[folder])

    def test_means_errors_and_the_worst_tenth_are_those_of_the_people(self, once):
        folder, results = once
        with (folder / "people.csv").open() as file:
            people = list(csv.DictReader(file))
        for row in results.summary():
            same = [p for p in people if (p["data"], p["method"], p["answers"]) == _key(row)]
            values = np.array([float(p["accuracy"]) for p in same])
            assert row["people"] == len(values) == 6
            assert row["accuracy"] == pytest.approx(values.mean())
            assert row["accuracy_se"] == pytest.approx(values.std(ddof=1) / np.sqrt(6))
            assert row["accuracy_worst"] == values.min()
            assert row["log_loss_worst"] == max(float(p["log_loss"]) for p in same)

    def test_claims_compare_like_with_like(self, once):
        _, results = once
        knows = {entry.label: entry.knows for entry in results.comparison.entries}
        differences = results.differences()
        assert {row.method for row in differences} == {"Gaussian, information", "factor analysis", "GlobalDice"}
        assert all(knows[row.method] == knows[row.reference] for row in differences)
        own = next(row for row in differences if row.score == "regret" and row.answers == 5)
        scores = [results.scores(own.data, label, "regret")[:, 2] for label in (own.method, own.reference)]
        # Less regret is better.
        assert own.difference == pytest.approx(-(scores[0] - scores[1]).mean())

    def test_a_reference_is_chosen_by_what_a_method_may_know(self):
        references = {"accuracy": "pairseek taste, {knows}", "regret": "nowhere"}
        plan = Comparison(["popularity", "pairseek taste, others"], ["simulated points"], references=references)
        first, second = plan.entries
        assert plan.reference("accuracy", first) == "pairseek taste, others"
        assert plan.reference("accuracy", second) is None
        assert plan.reference("regret", second) == "popularity"

    def test_coins_know_nothing_and_are_calibrated(self, once):
        _, results = once
        assert np.all(results.scores("rated", "Coin", "accuracy") == 0.5)
        assert results.scores("linear", "Coin", "log_loss") == pytest.approx(np.log(2))
        errors, excess = results.calibration("rated", "Coin")
        assert errors == pytest.approx(0.0)
        assert excess == pytest.approx(0.0)

    def test_it_is_a_frame_too(self, once):
        assert len(once[1].to_frame("pandas")) == 2 * 6 * 3


def _key(row):
    return row["data"], row["method"], str(row["answers"])


@pytest.fixture(scope="module")
def people():
    data = SimulatedPeople("linear", people=200, items=20, dimension=4, spread=6.0).dataset("linear")
    return held_out(replace(data, counts=(0, 10)), 60, half="reporting", seed=0)


class TestMethods:
    def accuracy(self, record, held, count=1):
        entry, out = entry_of(record), []
        for name in held.people:
            (person,) = held.dataset.sessions(name, 0)
            method = entry.make()
            begin(method, held.shown(entry.knows), without_watch)
            rows = list(replay_person(method, person, held.dataset.counts, held.key(name, 0, 0), without_watch))
            out.append(rows[count][0][COLUMNS.index("accuracy")])
        return np.array(out)

    @pytest.mark.parametrize("label", [*(label for label in FIRST_METHODS if "choix" not in label), *FURTHER])
    def test_answers_help_each_of_the_first_rivals(self, people, label):
        few = held_out(people.dataset, 8, half="reporting", seed=0)
        before, after = (self.accuracy(label, few, count).mean() for count in (0, 1))
        if label == "popularity":
            assert before == after
        elif label in FURTHER:
            # Their scores may help less than popularity does in ten answers; they may not hurt.
            assert after > before - 0.02
        else:
            # Eight people: the standard error is about 0.03.
            assert after > before + 0.02

    def test_random_questions_in_place_of_informative_ones_are_noticed(self, people, monkeypatch):
        """Paired over 60 people, the lead is several standard errors; without the strategy it is nothing."""
        informative = self.accuracy("Gaussian, information", people)
        random = self.accuracy({"method": "gaussian", "questions": "random"}, people)
        lead = informative - random
        assert lead.mean() > 2.5 * lead.std(ddof=1) / np.sqrt(len(lead))
        monkeypatch.setattr(LinearTaste, "ask", BaseMethod.ask)
        assert np.array_equal(self.accuracy("Gaussian, information", people), random)

    @pytest.mark.parametrize("label", INSTALLED)
    def test_other_packages_take_part_where_they_are_installed(self, people, label):
        pytest.importorskip(INSTALLED[label])
        few = held_out(people.dataset, 6, half="reporting", seed=0)
        assert self.accuracy(label, few).mean() > 0.5

    @pytest.mark.parametrize("label", INSTALLED)
    def test_a_missing_package_is_named_with_the_extra_that_has_it(self, dataset, label, monkeypatch):
        package = INSTALLED[label]
        for name in [package, *(name for name in sys.modules if name.startswith(f"{package}."))]:
            monkeypatch.setitem(sys.modules, name, None)
        entry = entry_of(label)
        with pytest.raises(MissingExtra) as caught:
            entry.make().begin(*held_of(dataset).shown(entry.knows))
        assert caught.value.extra == "rivals"

    def test_every_method_is_tested(self):
        assert {*FIRST_METHODS, *EXTRA_METHODS} == {
            *(label for label in FIRST_METHODS if "choix" not in label),
            *FURTHER,
            *INSTALLED,
        }

    def test_a_search_without_a_list_of_its_own_is_ranked_by_its_predictions(self):
        method = entry_of("pairseek taste, nothing").make()
        method.begin(["a", "b", "c"], None, None)
        assert method.recommend(3) is None
        method.tell(tuple(method.ask(np.array([[0, 1], [1, 2]]))), 1)
        assert method.recommend(3)[0] == 1


class TestCommand:
    SPEC = """
people = 3
answers = [0, 2]
methods = [
  "popularity",
  { label = "mine", method = "my_method:Wins" },
  { method = "helpers.compared:Faulty", fault = "nan" },
]
data = [{ name = "simulated", kind = "linear", people = 16, items = 5 }]
"""
    METHOD = """
import numpy as np
from pairseek.experiments import BaseMethod

class Wins(BaseMethod):
    def begin(self, items, vectors, others):
        self.wins = np.zeros(len(items))
    def tell(self, pair, outcome):
        self.wins[outcome] += 1
    def predict(self, pairs):
        return 1 / (1 + np.exp(self.wins[pairs[:, 1]] - self.wins[pairs[:, 0]]))
"""

    def test_it_writes_a_report_with_every_method_and_names_faults(self, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "mine.toml").write_text(self.SPEC)
        (tmp_path / "my_method.py").write_text(self.METHOD)
        assert _app.run(["compare", "mine.toml", "--jobs", "1", "--seed", "2"]) == 0
        shown = capsys.readouterr().out
        assert "helpers.compared:Faulty on simulated: not a number for 'p" in shown
        folder = tmp_path / "pairseek-results" / "compare-mine"
        page = (folder / "report.html").read_text()
        assert "mine" in page
        assert "helpers.compared:Faulty (3 failed)" in page
        for name in TABLES:
            assert (folder / name).exists()

    def test_an_edited_method_is_another_method(self, tmp_path, monkeypatch):
        monkeypatch.syspath_prepend(str(tmp_path))
        (tmp_path / "edited_method.py").write_text(self.METHOD)
        entry = entry_of({"method": "edited_method:Wins"})
        before = entry.record
        assert entry.record == before
        (tmp_path / "edited_method.py").write_text(self.METHOD.replace("+= 1", "+= 2"))
        assert entry.record != before

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("people = 3", "methods is missing"),
            ('methods = ["popularity"]\ndata = ["musik"]', "did you mean|use one of"),
            ('methods = ["popularity"]\ndata = ["music"]\nhalf = "best"', "use one of choosing, reporting"),
            ('methods = ["popularity"]\ndata = ["music"]\nanswers = [5, 2]', "increasing"),
            ('methods = ["popularity"]\ndata = ["music"]\nlimit = 0', "seconds above 0"),
            ('methods = ["popularity", "popularity"]\ndata = ["music"]', "the same label"),
            ('methods = ["popularity"]\ndata = ["music"]\nwrong = 1', "unknown field 'wrong'"),
            ("methods = [", "cannot be read as TOML"),
        ],
    )
    def test_errors_say_what_is_wrong(self, tmp_path, text, message):
        (tmp_path / "x.toml").write_text(text)
        with pytest.raises(InvalidParameter, match=message):
            compare(read_comparison(tmp_path / "x.toml"), tmp_path / "out")

    def test_presets_can_be_read_and_only_some_methods_run(self, tmp_path):
        for name in ("first", "quick"):
            assert len(read_comparison(name).entries) > 5
        with refused("methods"):
            _app.run(["compare", "quick", "--methods", "nobody", "--out", str(tmp_path / "x")])
        with refused("source"):
            read_comparison(tmp_path / "missing.toml")


def test_all_combinations_of_goal_and_knowledge_are_named():
    assert {f"pairseek {g}, {k}" for g, k in itertools.product(("taste", "best", "list"), KNOWLEDGE)} < set(
        FIRST_METHODS
    )


def test_a_data_set_can_be_given_as_it_is(dataset):
    assert dataset_of(dataset, None) is dataset
    assert issubclass(ComparisonResults, object)

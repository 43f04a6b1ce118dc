"""The commands embed, fit-noise and check: output, files and errors."""

from __future__ import annotations

import json

import numpy as np
import pytest

import pairseek as ps
from pairseek.embed import Triplets, simulate_triplets


@pytest.fixture
def truth():
    return ps.Items(np.random.default_rng(3).normal(size=(40, 2)), ids=[f"w{i:02d}" for i in range(40)])


@pytest.fixture
def judgements(truth, tmp_path):
    """Write a file of triplets with a column for the training and the test arm."""
    triplets = simulate_triplets(truth, 3000, 1, response=ps.Logistic(3.0, "normalized"))
    lines = ["head,winner,loser,arm"]
    for number, (i, j, k) in enumerate(triplets.rows.tolist()):
        lines.append(f"{truth.ids[i]},{truth.ids[j]},{truth.ids[k]},{'test' if number % 5 == 0 else 'train'}")
    path = tmp_path / "judgements.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_embed_chooses_the_dimension_and_writes_items(command, judgements, tmp_path):
    code, out, err = command(
        "embed", judgements, "--where", "arm=train", "--test-where", "arm=test", "--scaled", "--plot", "error.png"
    )
    assert (code, err) == (0, "")
    assert "d = 2   triplet error" in out
    assert "CKL: 40 items in 2 dimensions." in out
    assert "of the 600 held-out triplets are wrong" in out
    items = ps.Items.from_file(tmp_path / "items.csv")
    assert items.ids[0] == "w00"
    assert items.coordinates == pytest.approx(items.scaled().coordinates, abs=1e-12)
    note = json.loads((tmp_path / "items.provenance.json").read_text())
    held = Triplets.from_csv(judgements, ids=items.ids, where={"arm": "test"})
    assert note["held_out_triplet_error"] == pytest.approx(ps.metrics.triplet_error(items, held.among(items)))
    assert note["triplets"] == 2400
    assert note["dimension_choice"]["chosen"] == 2
    assert (tmp_path / "error.png").stat().st_size > 10_000


def test_embed_with_settings_as_json(command, judgements, tmp_path):
    arguments = ("embed", judgements, "--method", "tste", "--alpha", "2", "-d", "3", "--seed", "5", "--json")
    code, out, _ = command(*arguments, "--out", "a.csv")
    record = json.loads(out)
    assert (code, record["method"], record["dimensions"], record["seed"]) == (0, "tste", 3, 5)
    assert record["settings"]["alpha"] == 2
    assert record["held_out_triplets"] == 300
    assert record["files"] == ["a.csv", "a.provenance.json"]
    command(*arguments, "--out", "b.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_embed_takes_items_and_labels_from_a_file(command, judgements, truth, tmp_path):
    names = [*truth.ids, "new"]
    (tmp_path / "all.csv").write_text("id,label\n" + "".join(f"{name},Wine {i}\n" for i, name in enumerate(names)))
    code, _, err = command("embed", judgements, "--items", "all.csv", "-d", "2")
    assert code == 2
    assert "1 of 41 items are in no triplet: 'new'" in err
    code, _, _ = command("embed", judgements, "--items", "all.csv", "-d", "2", "--unseen", "mean")
    items = ps.Items.from_file(tmp_path / "items.csv")
    assert (code, items.labels[3], items.n) == (0, "Wine 3", 41)
    (tmp_path / "twice.csv").write_text("id,label\na,A\na,B\n")
    code, _, err = command("embed", judgements, "--items", "twice.csv")
    assert (code, "two items with the id 'a'" in err) == (2, True)


def test_embed_vectors(command, tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "vectors.npy", rng.normal(size=(60, 3)) @ rng.normal(size=(3, 100)))
    code, out, _ = command("embed", "vectors.npy", "--method", "pca", "-d", "3", "--out", "v.csv")
    assert code == 0
    assert "They keep 100.0% of the variance." in out
    assert ps.Items.from_file(tmp_path / "v.csv").d == 3
    assert command("embed", "vectors.npy", "--method", "pca")[0] == 0
    code, _, err = command("embed", "vectors.npy", "--method", "pca", "-d", "many")
    assert (code, "give a whole number, at least 1, or a share" in err) == (2, True)


@pytest.mark.parametrize(
    "option",
    [
        "--items=all.csv",
        "--unseen=mean",
        "--unseen=bogus",
        "--where=arm=train",
        "--test-where=arm=test",
        "--held-out=0.2",
        "--mu=3",
        "--alpha=2",
        "--shrinkage=0.1",
    ],
)
def test_options_of_triplets_do_not_apply_to_vectors(command, tmp_path, option):
    np.save(tmp_path / "vectors.npy", np.random.default_rng(0).normal(size=(10, 3)))
    code, out, err = command("embed", "vectors.npy", "--method", "pca", option)
    assert (code, out) == (2, "")
    assert f"{option.partition('=')[0]} does not apply to pca: leave it out" in err


def test_fit_noise_shows_six_models_and_the_best(command, judgements, truth, tmp_path):
    truth.to_csv(tmp_path / "truth.csv")
    code, out, _ = command("fit-noise", "truth.csv", judgements)
    assert code == 0
    lines = out.splitlines()
    assert sum(line.startswith(("logistic", "probit")) for line in lines) == 6
    assert "response=ps.Logistic(" in out or "response=ps.Probit(" in out
    record = json.loads(command("fit-noise", "truth.csv", judgements, "--json", "--folds", "0", "--start", "1e-4")[1])
    fit = next(fit for fit in record["fits"] if (fit["response"], fit["noise"]) == ("logistic", "normalized"))
    assert abs(fit["k"] - 3.0) < 3 * fit["standard_error"]
    assert fit["cross_validated"] is None
    assert record["best"] == record["fits"][0]


def test_fit_noise_says_when_k_is_unbounded(command, truth, tmp_path):
    truth.to_csv(tmp_path / "truth.csv")
    simulate_triplets(truth, 300, 1).to_csv(tmp_path / "sure.csv")
    code, out, _ = command("fit-noise", "truth.csv", "sure.csv")
    assert code == 0
    assert "k runs to infinity" in " ".join(out.split())


def test_check_prints_findings_and_json_and_writes_a_page(command, judgements, truth, tmp_path):
    truth.to_csv(tmp_path / "truth.csv")
    code, out, err = command("check", "truth.csv", "--triplets", judgements, "--html", "check.html", "--people", "1")
    assert (code, err) == (0, "Columns of truth.csv: coordinates: x0, x1; choose with --coordinates.\n")
    for name in ("size", "near-duplicates", "outliers", "prior", "triplets", "informative pairs", "expected answers"):
        assert name in out
    assert "A catalogue, checked" in (tmp_path / "check.html").read_text()
    record = json.loads(command("check", "truth.csv", "--k", "2", "--box=-1,1", "--radius", "0.7", "--json")[1])
    assert record["response"] == {"name": "logistic", "noise": "normalized", "k": 2.0}
    assert record["target_radius"] == 0.7
    assert 0 < record["outside_prior"] < 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("embed", "none.csv"), "there is no file none.csv"),
        (("embed", "judgements.csv", "--method", "stee"), "did you mean 'ste'"),
        (("embed", "judgements.csv", "--mu", "1", "--method", "ste"), "--mu does not apply to ste: leave it out"),
        (("embed", "judgements.csv", "--method", "ste", "--standardize"), "--standardize does not apply to ste"),
        (("embed", "judgements.csv", "--drop-constant"), "--drop-constant does not apply to ckl"),
        (("embed", "judgements.csv", "--coordinates", "x"), "--coordinates does not apply to ckl"),
        (("embed", "judgements.csv", "-d", "0"), "give a whole number, at least 1, or auto"),
        (("embed", "judgements.csv", "-d", "²"), "give a whole number, at least 1, or auto"),
        (("embed", "vectors.npy", "--method", "pca", "-d", "0"), "--dimensions is '0': give a whole number"),
        (("embed", "vectors.npy", "--method", "pca", "-d", "1.5"), "--dimensions is '1.5': give a whole number"),
        (("embed", "vectors.npy", "--method", "pca", "-d", "nan"), "--dimensions is 'nan': give a whole number"),
        (("embed", "judgements.csv", "-d", "39"), "40 items for 39 dimensions"),
        (("embed", "judgements.csv", "--where", "arm"), "give COLUMN=VALUE"),
        (("embed", "judgements.csv", "--test-where", "arm=test"), "also select the triplets to fit"),
        (("embed", "judgements.csv", "--out", "items.npy", "-d", "2"), "ends in .csv"),
        (("embed", "judgements.csv", "--plot", "e.png", "-d", "2"), "use it with triplets and -d auto"),
        (("fit-noise", "other.csv", "judgements.csv"), "is not among the 2 items"),
        (("fit-noise", "other.csv", "judgements.csv", "--folds", "1"), "--folds is 1"),
        (("check", "other.csv", "--box", "wide"), "--box is 'wide'"),
        (("check", "other.csv", "--noise", "pink"), "--noise is 'pink'"),
    ],
)
def test_wrong_commands_end_with_one_line(command, judgements, tmp_path, arguments, words):
    (tmp_path / "other.csv").write_text("id,x\na,1\nb,2\n")
    np.save(tmp_path / "vectors.npy", np.random.default_rng(0).normal(size=(10, 3)))
    code, out, err = command(*arguments)
    # The command fails before it computes or writes anything.
    assert not list(tmp_path.glob("items.*"))
    assert (code, out) == (2, "")
    # A command that reads items first prints which columns are coordinates.
    *notes, line = err.splitlines()
    assert words in line
    assert [note for note in notes if not note.startswith("Columns of other.csv: ")] == []

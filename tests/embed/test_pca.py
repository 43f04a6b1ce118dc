"""PCA of vectors, the choice of the dimension, and items on disk with their provenance."""

from __future__ import annotations

import json

import numpy as np
import pytest

import pairseek as ps
from helpers.refusals import refused
from pairseek.embed import (
    CKL,
    PCA,
    STE,
    Triplets,
    choose_dimension,
    provenance,
    read_provenance,
    save_items,
    simulate_triplets,
)
from pairseek.errors import InvalidFile, InvalidItems, InvalidParameter


@pytest.fixture
def vectors():
    """80 vectors in 300 dimensions that vary along three directions, and a little along all."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(80, 3)) @ rng.normal(size=(3, 300)) + 0.05 * rng.normal(size=(80, 300))


@pytest.mark.parametrize("wide", [True, False])
def test_pca_is_the_singular_value_decomposition(vectors, wide):
    table = vectors if wide else vectors[:, :20]
    pca = PCA(n_components=3).fit(table)
    centred = table - table.mean(axis=0)
    left, values, axes = np.linalg.svd(centred, full_matrices=False)
    signs = np.sign((pca.components_ * axes[:3]).sum(axis=1))
    assert pca.components_ == pytest.approx(axes[:3] * signs[:, None], abs=1e-9)
    assert pca.embedding_ == pytest.approx(left[:, :3] * values[:3] * signs, abs=1e-8)
    assert pca.explained_variance_ratio_ == pytest.approx(values[:3] ** 2 / (values**2).sum(), rel=1e-9)
    assert pca.transform(table[:5]) == pytest.approx(pca.embedding_[:5], abs=1e-9)


def test_pca_keeps_a_fraction_of_the_variance(vectors):
    assert PCA(n_components=0.95).fit(vectors).embedding_.shape == (80, 3)
    assert PCA(n_components=0.9999).fit(vectors).embedding_.shape[1] > 3


def test_standardized_columns_do_not_depend_on_units(vectors):
    units = np.logspace(-3, 3, 300)
    first = PCA(n_components=2, standardize=True).fit_transform(vectors)
    second = PCA(n_components=2, standardize=True).fit_transform(vectors * units)
    assert second == pytest.approx(first, abs=1e-8)
    assert not np.allclose(PCA(n_components=2).fit_transform(vectors * units), first)


@pytest.mark.filterwarnings("ignore::pairseek.ScaleWarning", "ignore::pairseek.DimensionWarning")  # 300 columns
def test_pca_of_items_keeps_ids_and_labels(vectors):
    source = ps.Items(vectors, ids=[f"w{i}" for i in range(80)], labels=[f"Wine {i}" for i in range(80)])
    items = PCA(n_components=3).fit(source).to_items(scaled=True)
    assert (items.ids, items.labels, items.d) == (source.ids, source.labels, 3)
    assert ps.Search(items, posterior=ps.Particles(200), rng=1).ask().left in items.ids


def test_constant_columns_are_named_or_dropped(vectors):
    table = np.column_stack([vectors[:, :4], np.full(80, 7.0)])
    with pytest.raises(InvalidItems):
        PCA(n_components=2).fit(table)
    dropped = PCA(n_components=2, constant="drop", standardize=True).fit(table)
    assert dropped.embedding_ == pytest.approx(
        PCA(n_components=2, standardize=True).fit_transform(table[:, :4]), abs=1e-9
    )


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"n_components": 0}, InvalidParameter, "give a whole number, or a fraction"),
        ({"n_components": 1.5}, InvalidParameter, "n_components is 1.5"),
        ({"n_components": 79}, InvalidItems, "80 items for 79 dimensions"),
        ({"n_components": 5}, InvalidItems, "vary in only 4 directions, 5 were requested"),
        ({"constant": "keep"}, InvalidParameter, "constant is 'keep'"),
    ],
)
def test_pca_with_impossible_settings_is_refused(vectors, settings, error, message):
    with pytest.raises(error, match=message):
        PCA(**settings).fit(vectors[:, :4])


def test_nan_and_use_before_a_fit_are_refused(vectors):
    vectors[3, 5] = np.nan
    with pytest.raises(InvalidItems):
        PCA().fit(vectors)
    with pytest.raises(InvalidParameter):
        PCA().to_items()


@pytest.fixture(scope="module")
def plane():
    items = ps.Items(np.random.default_rng(0).normal(size=(50, 2)))
    return simulate_triplets(items, 4000, 1, response=ps.Logistic(3.0, "normalized"))


def test_the_true_dimension_is_chosen(plane, tmp_path):
    steps = []
    choice = choose_dimension(plane, (3, 1, 2, 4), rng=1, progress=lambda *step: steps.append(step))
    assert choice.dimensions == (1, 2, 3, 4)
    assert choice.chosen == 2
    assert choice.errors.shape == (4, 5)
    assert len(steps) == 20
    assert choice.mean[0] > choice.mean[1] + 3 * choice.standard_error[1]
    assert choice.record()["chosen"] == 2
    assert "d = 2" in str(choice)
    drawn = choice.plot(tmp_path / "error.png").read_bytes()
    assert drawn.startswith(b"\x89PNG")
    assert len(drawn) > 10_000
    with pytest.raises(InvalidFile):
        choice.plot(tmp_path / "none" / "error.png")


def test_the_rule_of_one_standard_error():
    errors = np.array([[0.30, 0.32], [0.21, 0.25], [0.20, 0.24], [0.22, 0.26]])
    choice = ps.embed.DimensionChoice((1, 2, 3, 4), errors, "ckl", 10_000)
    assert choice.standard_error[2] == pytest.approx(0.02)
    assert (choice.lowest, choice.chosen) == (3, 2)
    # Folds may agree by chance: the standard error with 10,000 triplets is still 0.004.
    agreeing = ps.embed.DimensionChoice((1, 2), np.array([[0.222, 0.222], [0.22, 0.22]]), "ckl", 10_000)
    assert agreeing.standard_error[1] == pytest.approx(np.sqrt(0.22 * 0.78 / 10_000))
    assert agreeing.chosen == 1


def test_a_choice_is_the_same_for_the_same_seed(plane):
    few = plane.take(np.arange(800))
    first, second = (choose_dimension(few, (1, 2), method=STE(tol=1e-4), folds=3, rng=5) for _ in range(2))
    assert np.array_equal(first.errors, second.errors)
    assert first.method == "ste"


def test_impossible_dimensions_and_folds_are_refused(plane):
    with refused("dimensions"):
        choose_dimension(plane, (0, 1))
    with pytest.raises(InvalidItems):
        choose_dimension(plane, (49,))
    with pytest.raises(InvalidParameter) as caught:
        choose_dimension(plane, (1,), folds=1)
    assert caught.value.field == "folds"


def test_items_are_saved_with_their_provenance(plane, tmp_path):
    fitted, held = plane.split(0.2, 0)
    embedding = CKL(random_state=7).fit(fitted)
    record = provenance(embedding, held_out=held)
    table, note = save_items(embedding.to_items(scaled=True), tmp_path / "wines.csv", record, scaled=True)
    assert note.name == "wines.provenance.json"
    back = ps.Items.from_file(table)
    assert np.array_equal(back.coordinates, embedding.to_items(scaled=True).coordinates)
    read = read_provenance(table)
    assert (read["method"], read["dimensions"], read["seed"], read["scaled"]) == ("ckl", 2, 7, True)
    assert read["held_out_triplet_error"] == pytest.approx(1 - embedding.score(held))
    assert read["settings"]["mu"] == 1.0
    assert read["pairseek"] == ps.__version__
    # The ids are now text, and still match those of the triplets.
    assert ps.metrics.triplet_error(back, held.among(back)) == pytest.approx(1 - embedding.score(held))


def test_provenance_of_other_items_is_refused(plane, tmp_path):
    embedding = CKL(random_state=7).fit(plane)
    table, note = save_items(embedding.to_items(), tmp_path / "wines.csv", provenance(embedding))
    ps.Items(2 * embedding.embedding_).to_csv(table)
    with pytest.raises(InvalidFile):
        read_provenance(table)
    note.write_text("{}")
    with pytest.raises(InvalidFile):
        read_provenance(table)
    note.unlink()
    assert read_provenance(table) is None
    with refused("path"):
        save_items(embedding.to_items(), tmp_path / "wines.npy", {})
    with pytest.raises(InvalidFile):
        save_items(embedding.to_items(), tmp_path / "none" / "wines.csv", {})


def test_the_provenance_of_a_pca_has_the_variance_kept(vectors, tmp_path):
    pca = PCA(n_components=3).fit(vectors)
    _, note = save_items(pca.to_items(), tmp_path / "v.csv", provenance(pca))
    assert json.loads(note.read_text())["variance_kept"] == pytest.approx(pca.explained_variance_ratio_.sum())


def test_embed_loads_on_first_use():
    assert ps.embed.Triplets is Triplets

"""Embeddings from triplets: recovery, held-out error, the estimator interface, and real judgements."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import scipy.spatial

import pairseek as ps
from helpers.refusals import missing_extra
from pairseek.embed import CKL, GNMDS, METHODS, STE, TSTE, Triplets, simulate_triplets
from pairseek.embed.objective import Objective, padded
from pairseek.errors import InvalidItems, InvalidParameter, InvalidTriplets


@pytest.fixture(scope="module")
def small():
    """60 items in two dimensions, with noisy triplets for training and testing."""
    items = ps.Items(np.random.default_rng(0).normal(size=(60, 2)))
    response = ps.Logistic(2.0, "normalized")
    return (
        items,
        simulate_triplets(items, 6000, 1, response=response),
        simulate_triplets(items, 5000, 2, response=response),
    )


@pytest.mark.parametrize("method", [STE, GNMDS])
def test_noiseless_triplets_recover_the_points(method):
    items = ps.Items(np.random.default_rng(0).normal(size=(200, 3)))
    triplets = simulate_triplets(items, 50_000, 1)
    embedding = method(n_components=3, random_state=0).fit(triplets)
    disparity = scipy.spatial.procrustes(items.coordinates, embedding.embedding_)[2]
    # Both reach about 0.0002.
    assert disparity < 0.001
    assert embedding.score(triplets) > 0.998


@pytest.mark.parametrize("method", METHODS.values())
def test_noisy_triplets_are_predicted_nearly_as_well_as_by_the_truth(method, small):
    items, fitted, held = small
    truth = 1.0 - ps.metrics.triplet_error(items, held.rows)
    embedding = method(n_components=2, random_state=3).fit(fitted)
    # With 100 judgements per item, estimation costs about 0.012; three standard errors of 5000 triplets are 0.017.
    assert embedding.score(held) > truth - 0.03
    assert embedding.embedding_.shape == (60, 2)
    assert embedding.validation_error_ == pytest.approx(1.0 - embedding.score(held), abs=0.06)


def test_shrinkage_is_chosen_where_it_predicts_best():
    # With few triplets, suppressing noise pays. The gain is about 0.005, with a standard error of about 0.003 for one
    # seed, so there are six.
    response = ps.Logistic(2.0, "normalized")
    scores = []
    for seed in range(6):
        items = ps.Items(np.random.default_rng(seed).normal(size=(60, 2)))
        fitted = simulate_triplets(items, 800, seed, response=response)
        held = simulate_triplets(items, 5000, 100 + seed, response=response)
        chosen = STE(random_state=seed).fit(fitted)
        rigid = STE(random_state=seed, shrinkage=chosen.path_[0].shrinkage).fit(fitted)
        free = STE(random_state=seed, shrinkage=0.0).fit(fitted)
        scores.append([embedding.score(held) for embedding in (rigid, chosen, free)])
        assert chosen.shrinkage_ in [step.shrinkage for step in chosen.path_]
        # Less shrinkage means a lower training loss.
        assert free.loss_ <= chosen.loss_ <= rigid.loss_
    rigid, chosen, free = np.mean(scores, axis=0)
    assert chosen > max(rigid, free) + 0.002


def test_the_gradient_vanishes_at_the_result(small):
    _, fitted, _ = small
    embedding = STE(n_components=2, random_state=0, shrinkage=3.0, validation=0.0, tol=1e-12).fit(fitted)
    _, gradient = Objective(fitted.rows, 60, STE.kind, 0.0)(padded(embedding.embedding_))
    total = gradient[:, :2] + 2 * 3.0 * embedding.embedding_
    assert np.abs(total).max() < 1e-3 * np.abs(gradient).max()


def test_the_spectral_start_is_as_good_as_the_best_of_many(small):
    _, fitted, _ = small
    single = STE(n_components=1, random_state=0, shrinkage=1.0, validation=0.0, n_init=1).fit(fitted)
    many = STE(n_components=1, random_state=1, shrinkage=1.0, validation=0.0, n_init=8).fit(fitted)
    assert single.loss_ == pytest.approx(many.loss_, rel=0.01)


def test_ckl_is_t_ste_with_one_degree_of_freedom(small):
    _, fitted, _ = small
    first = CKL(mu=1.0, random_state=4).fit(fitted)
    second = TSTE(alpha=1.0, random_state=4).fit(fitted)
    assert second.embedding_ == pytest.approx(first.embedding_, abs=0.02 * first.embedding_.std())


def test_mu_is_the_unit_of_squared_length(small):
    _, fitted, _ = small
    first = CKL(mu=1.0, random_state=4).fit(fitted)
    second = CKL(mu=9.0, random_state=4).fit(fitted)
    assert second.embedding_ == pytest.approx(3.0 * first.embedding_, abs=0.02 * second.embedding_.std())
    assert second.shrinkage_ == pytest.approx(first.shrinkage_ / 9.0, rel=0.01)


def test_methods_behave_like_scikit_learn_estimators(small):
    _, fitted, _ = small
    method = CKL(n_components=3, mu=0.5, random_state=2)
    assert method.get_params()["mu"] == 0.5
    assert type(method)(**method.get_params()).get_params() == method.get_params()
    assert method.set_params(n_components=2) is method
    coordinates = method.fit_transform(fitted)
    assert coordinates is method.embedding_
    assert np.array_equal(coordinates, copy.copy(method).fit(fitted.rows).embedding_)
    with pytest.raises(InvalidParameter, match="no setting 'nu'"):
        method.set_params(nu=1)
    with pytest.raises(InvalidParameter, match="call fit first"):
        CKL().score(fitted)


def test_responses_of_cblearn_swap_near_and_far(small):
    _, fitted, _ = small
    signs = np.where(np.arange(len(fitted)) % 2, 1, -1)
    rows = np.where((signs > 0)[:, None], fitted.rows, fitted.rows[:, [0, 2, 1]])
    first = STE(random_state=0).fit(fitted.rows)
    second = STE(random_state=0).fit(rows, signs)
    assert np.array_equal(first.embedding_, second.embedding_)
    assert first.score(rows, signs) == first.score(fitted)


def test_equal_seeds_give_equal_embeddings(small):
    _, fitted, _ = small
    first, second, third = (STE(random_state=seed).fit(fitted).embedding_ for seed in (1, 1, 2))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, third)


def test_contradicting_triplets_balance():
    rows = np.array([[0, 1, 2], [0, 2, 1]] * 20 + [[3, 0, 1], [3, 0, 2], [1, 2, 3], [2, 1, 3]] * 20)
    points = STE(n_components=2, random_state=0).fit(rows).embedding_
    near, far = (np.linalg.norm(points[0] - points[i]) for i in (1, 2))
    assert near == pytest.approx(far, rel=0.05)


def test_a_search_accepts_the_items_of_an_embedding(small):
    _, fitted, _ = small
    named = Triplets(fitted.rows, ids=[f"i{row}" for row in range(60)])
    embedding = CKL(random_state=0).fit(named)
    items = embedding.to_items(scaled=True, labels=[f"Item {row}" for row in range(60)])
    assert items == ps.Items(embedding.embedding_, named.ids).scaled()
    search = ps.Search(items, posterior=ps.Particles(300), rng=1)
    assert search.ask().left in named.ids
    assert items.labels[3] == "Item 3"


def test_axes_are_principal_and_centred(small):
    _, fitted, _ = small
    points = CKL(n_components=3, random_state=0).fit(fitted).embedding_
    covariance = np.cov(points.T)
    assert np.abs(points.mean(axis=0)).max() < 1e-9
    assert np.abs(covariance - np.diag(np.diag(covariance))).max() < 1e-9 * covariance[0, 0]
    assert np.all(np.diff(np.diag(covariance)) <= 0)


def test_progress_goes_to_a_function(small, capsys):
    _, fitted, _ = small
    steps = []
    STE(random_state=0, progress=steps.append).fit(fitted)
    assert {step.stage for step in steps} == {"path", "all triplets"}
    assert "shrinkage" in str(steps[-1])
    assert "held out" in str(steps[-1])
    STE(random_state=0, progress=True).fit(fitted)
    # Standard error is not a terminal here, so there is no bar.
    assert capsys.readouterr().err == ""


def test_a_bar_without_rich_names_the_extra(small, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "rich.console", None)
    with missing_extra("cli"):
        STE(progress=True).fit(small[1])


def test_items_in_no_triplet_are_named_or_placed_at_the_mean(small):
    _, fitted, _ = small
    more = Triplets(fitted.rows, ids=[f"i{row}" for row in range(67)])
    with pytest.raises(InvalidTriplets):
        STE().fit(more)
    points = STE(unseen="mean", random_state=0).fit(more).embedding_
    # The prior mean is zero, and the other items are centred on it up to the tolerance of the optimiser.
    assert np.abs(points[60:]).max() < 0.02 * points.std()


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"n_components": 0}, "n_components"),
        ({"n_components": 2.5}, "n_components"),
        ({"n_init": 0}, "n_init"),
        ({"validation": 1.0}, "validation"),
        ({"validation": 0.0}, "shrinkage"),
        ({"shrinkage": -1.0}, "shrinkage"),
        ({"tol": 0.0}, "tol"),
        ({"unseen": "drop"}, "unseen"),
    ],
)
def test_settings_out_of_range_are_refused(settings, field, small):
    with pytest.raises(InvalidParameter) as caught:
        STE(**settings).fit(small[1])
    assert caught.value.field == field


def test_parameters_of_losses_out_of_range_are_refused(small):
    with pytest.raises(InvalidParameter) as caught:
        CKL(mu=0).fit(small[1])
    assert caught.value.field == "mu"
    with pytest.raises(InvalidParameter) as caught:
        TSTE(alpha=-1).fit(small[1])
    assert caught.value.field == "alpha"


def test_too_few_items_for_the_dimensions_are_refused():
    with pytest.raises(InvalidItems):
        STE(n_components=3).fit([[0, 1, 2], [3, 1, 2]])


@pytest.mark.slow
@pytest.mark.parametrize("method", [STE, CKL])
def test_the_size_of_the_paper(method, shared, monkeypatch):
    """With 958,479 triplets over 12,624 items, the held-out error exceeds that of the truth by at most 0.031."""
    if shared is not None:
        monkeypatch.setenv("PAIRSEEK_DATA", str(shared))
    # Like Food-10k, the stand-in is 2.5 times as wide along one direction as along the others.
    stand_in = ps.Items(ps.datasets.synthetic(4).coordinates * [2.5, 1.0, 1.0, 1.0])
    items = (stand_in if shared is None else ps.datasets.food10k(4)).scaled()
    response = ps.datasets.food10k_facts(4).response("logistic", "normalized")
    fitted = simulate_triplets(items, 958_479, 0, response=response)
    held = simulate_triplets(items, 100_000, 1, response=response)
    wrong = 1.0 - method(n_components=4, random_state=0).fit(fitted).score(held)
    # The truth is scored on the same triplets, whose difficulty varies by 0.0012.
    assert wrong < ps.metrics.triplet_error(items, held.rows) + 0.031


def arms(shared, name):
    """Training and test triplets of real people, or of a one-dimensional stand-in with similar noise."""
    if shared is None:
        n, k = (30, 5.0) if name == "strange_fruit30" else (300, 6.0)
        items = ps.Items(np.random.default_rng(5).normal(size=(n, 1)))
        response = ps.Logistic(k, "normalized")
        return simulate_triplets(items, 15_000, 1, response=response), simulate_triplets(
            items, 4000, 2, response=response
        )
    folder = shared / "data" / "triplets" / name
    if name == "strange_fruit30":
        path, column = folder / "triplets.csv", "alg"
        parts = [
            Triplets.from_csv(path, ids=range(30), where={column: arm})
            for arm in ("RandomSampling", "UncertaintySampling", "STE", "CrowdKernel", "Test")
        ]
        return Triplets(np.concatenate([part.rows for part in parts[:4]]), range(30)), parts[4]
    path = folder / "responses.csv"
    ids = Triplets.from_csv(path).ids
    return tuple(Triplets.from_csv(path, ids=ids, where={"Alg.Label": arm}) for arm in ("Train", "Test"))


@pytest.mark.parametrize(("name", "accuracy"), [("strange_fruit30", 0.84), ("alien_eggs", 0.86)])
def test_real_judgements_are_predicted_on_their_test_arm(name, accuracy, shared):
    fitted, held = arms(shared, name)
    scores = [CKL(n_components=1, random_state=seed).fit(fitted).score(held) for seed in range(3)]
    assert np.mean(scores) >= accuracy


@pytest.mark.parametrize("name", ["strange_fruit30", "alien_eggs"])
def test_one_dimension_is_chosen_for_one_dimensional_judgements(name, shared):
    fitted, _ = arms(shared, name)
    choice = ps.embed.choose_dimension(fitted, (1, 2, 3), rng=0)
    assert choice.chosen == 1


def test_real_judgements_of_shoes_are_predicted(shared):
    if shared is None:
        items = ps.Items(np.random.default_rng(5).normal(size=(85, 5)))
        triplets = simulate_triplets(items, 100_000, 1, response=ps.Logistic(3.5, "normalized"))
    else:
        triplets = Triplets.from_csv(shared / "data" / "triplets" / "zappos85" / "deconflicted_triplets.csv")
    scores = []
    for seed in range(3):
        fitted, held = triplets.split(0.2, seed)
        scores.append(STE(n_components=5, random_state=seed).fit(fitted).score(held))
    assert np.mean(scores) >= 0.85

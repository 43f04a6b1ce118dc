"""Items without coordinates: information, predictions and pairs against quadrature, after every possible history."""

from itertools import combinations, product

import numpy as np
import pytest
from scipy.special import entr, expit

import pairseek as ps

NODES = 32
"""Nodes along each dimension: information is within 2e-4 bits of that with 60."""


def quadrature(n, deviation):
    """Return (points, n) utilities up to a common constant, and their prior weights.

    Utilities are independent and normal, so n - 1 orthogonal contrasts of them are, too, and decide every answer.
    """
    values, weights = np.polynomial.hermite_e.hermegauss(NODES)
    contrasts = np.linalg.svd(np.eye(n) - 1.0 / n)[0][:, : n - 1]
    grid = np.stack(np.meshgrid(*[deviation * values] * (n - 1), indexing="ij"), axis=-1).reshape(-1, n - 1)
    weight = np.prod(np.stack(np.meshgrid(*[weights] * (n - 1), indexing="ij"), axis=-1).reshape(-1, n - 1), axis=1)
    return grid @ contrasts.T, weight / weight.sum()


def information(chances, weights):
    """Return the information of answers in bits, h(E P) - E h(P), and E P."""
    mean = weights @ chances
    return (entr(mean) + entr(1 - mean) - weights @ (entr(chances) + entr(1 - chances))) / np.log(2), mean


@pytest.mark.parametrize(("n", "answers"), [(3, 5), (4, 4)])
@pytest.mark.parametrize("rest", [ps.Rest(), ps.Rest(pair=0)], ids=["pairs return late", "pairs return at once"])
def test_information_and_pair_are_those_of_quadrature_after_every_history(n, answers, rest):
    """Histories include all contradictions.

    EP approximates the posterior by a Gaussian. The largest errors are 0.020 bits (after three answers that form a
    circle, 0.29 instead of 0.27) and 0.003 of a probability, and the chosen pair has at least 0.998 of the best
    information.
    """
    pairs = list(combinations(range(n), 2))
    start = ps.Search(ps.Items(ids=range(n)), rest=rest, rng=2)
    assert start.response == ps.Logistic(1.0, "constant", residual=2.0)
    utilities, prior = quadrature(n, start.response.residual)
    first, second = np.array(pairs).T
    chances = expit(utilities[:, first] - utilities[:, second])
    for count in range(answers + 1):
        for wins in product((True, False), repeat=count):
            search, weights, asked = start.continued([]), prior, []
            for first_wins in wins:
                query = search.ask()
                pair = tuple(sorted((query.left, query.right)))
                search.tell(query, winner=pair[0 if first_wins else 1])
                likelihood = chances[:, pairs.index(pair)]
                weights = weights * (likelihood if first_wins else 1.0 - likelihood)
                asked.append(pair)
            exact, probability = information(chances, weights / weights.sum())
            query = search.ask()
            chosen = pairs.index(tuple(sorted((query.left, query.right))))
            forward = query.info.probability_left if query.left < query.right else 1.0 - query.info.probability_left
            assert query.info.information == pytest.approx(exact[chosen], abs=0.022)
            assert forward == pytest.approx(probability[chosen], abs=0.004)
            permitted = [pair not in asked for pair in pairs] if rest == ps.Rest() else [True] * len(pairs)
            # Once every pair was asked, the oldest pair returns.
            if any(permitted):
                assert exact[chosen] >= 0.995 * exact[permitted].max()

"""The person x item table against simulated people, whose utilities are known."""

import numpy as np
import pytest
from scipy.special import expit

import pairseek as ps
from pairseek.people.ranking.personal import PersonalTastes, _Answers, _Group
from pairseek.people.ranking.utilities import mean_utilities

N, PEOPLE = 10, 24


def simulated(seed: int, *, answers: int = 25, tie: float = 0.0, items: int = N, people: int = PEOPLE):
    """Return choices, and the (people, items) probabilities of a choice over a typical item."""
    rng = np.random.default_rng(seed)
    base, factors = rng.standard_normal(items), 0.6 * rng.standard_normal((items, 2))
    utility = base + rng.standard_normal((people, 2)) @ factors.T + 0.6 * rng.standard_normal((people, items))
    rows, tied = [], []
    for person in range(people):
        for _ in range(answers):
            first, second = rng.choice(items, 2, replace=False).tolist()
            difference, draw = utility[person, first] - utility[person, second], rng.random()
            if draw < expit(difference - tie):
                rows.append((f"p{person}", first, second))
            elif draw < expit(difference - tie) + expit(-difference - tie):
                rows.append((f"p{person}", second, first))
            else:
                tied.append((f"p{person}", first, second))
    return ps.Choices.from_pairs(rows, ids=range(items), tied=tied), expit(utility - utility.mean(axis=1)[:, None])


def table_of(choices: ps.Choices) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[int]]:
    people = list(PersonalTastes.of(mean_utilities(choices)).chances())
    chance, low, high = (np.stack([getattr(one, name) for one in people]) for name in ("chance", "low", "high"))
    return chance, low, high, [int(one.person[1:]) for one in people]


def quality(seeds: range, **settings: float) -> tuple[float, float, float]:
    """Return the correlation with the truth, that of the same column for everybody, and the coverage."""
    out = []
    for seed in seeds:
        choices, truth = simulated(seed, **settings)
        chance, low, high, rows = table_of(choices)
        truth = truth[rows]
        same = np.tile(chance.mean(axis=0), (len(truth), 1))
        correlations = (np.corrcoef(table.ravel(), truth.ravel())[0, 1] for table in (chance, same))
        out.append((*correlations, np.mean((low <= truth) & (truth <= high))))
    return tuple(np.mean(out, axis=0))


def test_the_table_correlates_with_the_truth_and_its_intervals_hold_it() -> None:
    # In four simulations of a similar size the coverage was 0.85 to 0.94; the limits are wider, for three simulations.
    correlation, same, coverage = quality(range(3))
    assert correlation > 0.77
    assert correlation > same + 0.05
    assert 0.81 < coverage < 0.97


@pytest.mark.long
@pytest.mark.parametrize("settings", [{}, {"tie": 0.5}, {"people": 12, "answers": 15}, {"items": 30, "answers": 40}])
def test_coverage_is_near_nominal_over_many_simulations(settings) -> None:
    # In groups of four simulations, the coverage differed by up to 0.1, so a mean over 8 has an error near 0.015.
    correlation, same, coverage = quality(range(100, 108), **settings)
    assert correlation > same
    assert 0.86 < coverage < 0.94


def test_a_person_is_inferred_as_by_importance_sampling() -> None:
    """Against draws of coefficients and utilities from their priors, weighted by the likelihood of the answers."""
    rng = np.random.default_rng(1)
    group = _Group(np.array([0.5, -0.2, 0.0]), np.array([[0.6], [-0.3], [0.4]]), 0.4 * np.eye(3), 0.5, 0.3)
    answers = _Answers(np.array([0, 2]), np.array([0, 0, 1]), np.array([1, 1, 0]), np.array([1.0, 1.0, 0.0]))
    # Here the coefficients have their posterior given everybody's answers, so only the utilities get weighted.
    mean, variance = group.person(answers)
    count = 3000
    means, seconds = [], []
    for _ in range(300):
        base = group.base + group.base_root @ rng.standard_normal(3)
        utility = base + rng.standard_normal((count, 1)) @ group.root.T + np.sqrt(0.5) * rng.standard_normal((count, 3))
        difference = utility[:, 0] - utility[:, 2]
        weight = expit(difference - 0.3) ** 2 * (expit(difference + 0.3) - expit(difference - 0.3))
        relative = utility - utility.mean(axis=1)[:, None]
        means.append(weight @ relative / weight.sum())
        seconds.append(weight @ relative**2 / weight.sum())
    exact = np.mean(means, axis=0)
    # 300 draws of the coefficients, whose deviation is at most 0.4: the error of a mean is at most 0.02.
    np.testing.assert_allclose(mean, exact, atol=0.06)
    np.testing.assert_allclose(variance, np.mean(seconds, axis=0) - exact**2, rtol=0.15)


def test_someone_who_answers_at_random_is_nearly_unknown() -> None:
    choices, _ = simulated(1, people=12)
    rng = np.random.default_rng(0)
    pairs = [
        (f"p{choices.person[row]}", int(choices.winner[row]), int(choices.loser[row])) for row in range(len(choices))
    ]
    coins = [("p99", *map(int, rng.choice(N, 2, replace=False))) for _ in range(120)]
    _, low, high, rows = table_of(ps.Choices.from_pairs([*pairs, *coins], ids=range(N)))
    width = (high - low).mean(axis=1)
    assert rows[-1] == 99
    assert width[-1] > width[:-1].max()


def test_items_that_nobody_saw_are_uncertain_and_counts_are_per_person() -> None:
    choices, _ = simulated(2)
    rows = [
        (f"p{who}", int(first), int(second))
        for who, first, second in zip(choices.person, choices.winner, choices.loser, strict=True)
    ]
    wider = ps.Choices.from_pairs(rows, ids=range(N + 1))
    person = next(iter(PersonalTastes.of(mean_utilities(wider)).chances()))
    assert person.answers[N] == 0
    assert person.answers.sum() == 2 * sum(row[0] == person.person for row in rows)
    assert person.high[N] - person.low[N] > 0.9 * np.max((person.high - person.low)[:N])

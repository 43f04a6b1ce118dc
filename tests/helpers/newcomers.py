"""Claims of searches that start from a small population, compared with the truth about simulated newcomers."""

from dataclasses import dataclass

import numpy as np

import pairseek as ps

KINDS, NOISES = ("monotone", "ideal point"), ("consistent", "noisy")
# Standard deviations of a person's utilities over the items, in logits.
_LOGITS = {"consistent": 10.0, "noisy": 1.5}


@dataclass(frozen=True)
class World:
    """Items, and the distribution of the people who choose among them."""

    items: ps.Items
    kind: str
    centre: np.ndarray
    width: float
    scale: float

    def utilities(self, rng):
        """Return the utilities of the items for a random person."""
        points = self.items.coordinates
        own = self.centre + self.width * rng.normal(size=self.items.d)
        return self.scale * (points @ own if self.kind == "monotone" else -np.sum((points - own) ** 2, axis=1))


def world(kind, noise, seed):
    """Return 30, 45 or 60 items in 2, 3 or 4 dimensions, with monotone utilities or scattered ideal points."""
    n, d, width = (30, 45, 60)[seed % 3], (2, 3, 4)[seed // 3 % 3], (0.4, 0.8)[seed % 2]
    rng = np.random.default_rng([seed, 77])
    if kind == "monotone":
        points, centre = 2.0 * rng.random((n, d)) - 1.0, np.ones(d)
    else:
        points, centre, width = rng.normal(size=(n, d)), 0.3 * rng.normal(size=d), width + 0.2
    unscaled = World(ps.Items(points, [f"i{row}" for row in range(n)]), kind, centre, width, 1.0)
    deviation = np.mean([unscaled.utilities(rng).std() for _ in range(50)])
    return World(unscaled.items, kind, centre, width, _LOGITS[noise] / deviation)


def answers(search, utility, count, rng):
    """Answer the search's questions, and yield (winner, loser)."""
    for _ in range(count):
        query = search.ask()
        gap = utility[search.items.index(query.left)] - utility[search.items.index(query.right)]
        pair = (query.left, query.right)
        pair = pair if rng.random() < 1.0 / (1.0 + np.exp(-np.clip(gap, -500, 500))) else pair[::-1]
        search.tell(query, winner=pair[0])
        yield pair


def learned(world, people, seed, count=20):
    """Fit a population to people who answered the questions of a search without one."""
    rows = []
    for person in range(people):
        rng = np.random.default_rng([seed, 1, person])
        utility = world.utilities(rng)
        rows += [(person, *pair) for pair in answers(ps.Search(world.items, rng=person), utility, count, rng)]
    return ps.Population.fit(ps.Choices.from_pairs(rows, ids=world.items.ids), world.items)


def claims(world, population, seed, newcomers, after=(10, 20)):
    """Return (newcomers, numbers of answers, 2): the claimed probability of the top pick, and whether it is right."""
    out = np.empty((newcomers, len(after), 2))
    for person in range(newcomers):
        rng = np.random.default_rng([seed, 2, person])
        utility = world.utilities(rng)
        search = ps.Search(world.items, population=population, rng=person)
        for row, count in enumerate(np.diff([0, *after])):
            list(answers(search, utility, count, rng))
            top = search.recommend(1)[0]
            out[person, row] = top.probability, world.items.index(top.id) == utility.argmax()
    return out

"""Methods for the tests of comparisons: some that behave, and some that do not."""

import os
import random
import time

import numpy as np

from pairseek.experiments import BaseMethod
from pairseek.people.choices import Choices

NOTES = []
"""What a `Spy` was shown, call by call."""


class Coin(BaseMethod):
    def predict(self, pairs):
        return np.full(len(pairs), 0.5)


class GlobalDice(BaseMethod):
    """Draws from the generators that all code of a process shares, as packages that take no generator do."""

    def predict(self, pairs):
        return np.random.random(len(pairs)) * random.random()  # noqa: NPY002


class Spy(Coin):
    def __init__(self, knows="nothing"):
        self.knows = knows

    def begin(self, items, vectors, others):
        NOTES.append(("begin", tuple(items), vectors, others))

    def ask(self, allowed):
        NOTES.append(("ask", allowed.copy()))
        return allowed[-1]

    def tell(self, pair, outcome):
        NOTES.append(("tell", pair, outcome))

    def predict(self, pairs):
        NOTES.append(("predict", pairs.copy()))
        return super().predict(pairs)


class Faulty(Coin):
    """Does something wrong after a number of answers."""

    def __init__(self, fault, step=2):
        self.fault, self.step, self.told = fault, step, 0

    def _now(self, fault):
        return self.fault == fault and self.told >= self.step

    def begin(self, items, vectors, others):
        self.n = len(items)
        if self.fault == "begin":
            raise OSError("no such file")

    def ask(self, allowed):
        if self._now("raise"):
            raise ValueError("a reason")
        if self._now("loop"):
            while True:
                pass
        if self._now("sleep"):
            time.sleep(1e6)
        if self._now("exit"):
            os._exit(3)
        if self._now("asked before"):
            return self.last
        if self._now("itself"):
            return 1, 1
        if self._now("none"):
            return None
        if self._now("fractions"):
            return 0.5, 1.5
        self.last = allowed[0]
        # Either order of the sides, as lists or arrays, is right.
        return allowed[0][::-1] if self.told % 2 else allowed[0].tolist()

    def tell(self, pair, outcome):
        self.told += 1

    def predict(self, pairs):
        out = super().predict(pairs)
        if self._now("nan"):
            out[-1] = np.nan
        if self._now("above"):
            out[0] = 1.0 + 1e-9
        if self._now("below"):
            out[0] = -0.25
        if self._now("words"):
            return "words"
        if self._now("short"):
            out = out[1:]
        return out

    def recommend(self, count):
        if self._now("twice"):
            return [0, 0, 1]
        return [self.n] if self._now("unknown item") else None


class NoPredict:
    knows = "nothing"

    def begin(self, items, vectors, others):
        pass

    def ask(self, allowed):
        return allowed[0]

    def tell(self, pair, outcome):
        pass


def rated(people=30, items=9, seed=0, missing=0.2):
    """Ratings from 1 to 5 of people whose tastes differ in one direction."""
    rng = np.random.default_rng(seed)
    taste, place = rng.normal(size=people), np.linspace(-1, 1, items)
    rows = [
        (f"person {p}", f"item {i}", float(np.clip(np.round(3 + 1.5 * taste[p] * place[i] + 0.7 * rng.normal()), 1, 5)))
        for p in range(people)
        for i in range(items)
        if rng.random() > missing
    ]
    return Choices.from_ratings(rows, ids=[f"item {i}" for i in range(items)])

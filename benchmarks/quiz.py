"""Time and size of a compiled quiz of 949 colours, compared with running its searches one after the other.

The reference is the bare engine in the same run: the processor time of a question and of a result of `Search` along
random paths, times their number in the tree.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

import pairseek as ps
from pairseek.quiz.compilation import RECOMMENDATION_COUNT
from pairseek.quiz.compiler import compile_quiz
from pairseek.quiz.content import QuizSource
from pairseek.quiz.plan import plan_quiz
from pairseek.web.studies.configuration import configured
from pairseek.web.studies.demo import colour_items


def processor_seconds() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def bare_engine(items: ps.Items, answers: int, paths: int) -> tuple[float, float]:
    """Return the processor time of a question and of a result, averaged over random paths."""
    asking = ending = 0.0
    for sides in np.random.default_rng(1).integers(2, size=(paths, answers)):
        search = ps.Search(items, rng=0)
        began = time.process_time()
        for side in sides:
            query = search.ask()
            search.tell(query, winner=query.right if side else query.left)
        middle = time.process_time()
        search.estimate().credible_radius()
        search.recommend(RECOMMENDATION_COUNT)
        asking, ending = asking + middle - began, ending + time.process_time() - middle
    return asking / (paths * answers), ending / paths


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=int, default=12)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    items = colour_items()
    bare_engine(items, 2, 1)  # compiles and loads kernels
    question, result = bare_engine(items, given.answers, 20)
    source = QuizSource(configured({"title": "Colours", "answers": given.answers}), items)
    plan = plan_quiz(source, jobs=given.jobs)
    before = processor_seconds()
    with tempfile.TemporaryDirectory() as folder:
        made = compile_quiz(plan, Path(folder) / "quiz")
    used = processor_seconds() - before
    bare = made.pairs * question + made.results * result
    print(f"{items.n} colours, {given.answers} answers, {given.jobs} processes, load {os.getloadavg()[0]:.1f}")
    print(f"bare engine: {1e3 * question:.2f} ms per question, {1e3 * result:.2f} ms per result, {bare:.1f} s in total")
    print(f"expected: {plan.seconds:.1f} s, at most {plan.size / 1000:.0f} kB")
    print(f"compiled: {made.seconds:.1f} s, {used:.1f} s of processor time, {sum(made.sizes.values()) / 1000:.0f} kB")
    print("  " + ", ".join(f"{name} {size / 1000:.0f} kB" for name, size in made.sizes.items()))


if __name__ == "__main__":
    main()

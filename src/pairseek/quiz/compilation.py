"""Compilation of a quiz: the expected cost of its tree, and its growth in several processes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pairseek.core.types import Event
from pairseek.experiments.runs.plan import Task
from pairseek.experiments.runs.processes import run_on_processes
from pairseek.quiz.tree import AnswerPath, QuizTree, grow, result_of
from pairseek.search.state import SearchState

RECOMMENDATION_COUNT = 6
"""Number of recommended items at the end of a quiz, as on the result page of a study."""
_CUT_DEPTH = 6
"""Answers after which the tree is divided; 64 parts suffice for many processes and a smooth progress bar."""
_PROBE_COUNT = 3
"""Number of paths through the tree that are timed to forecast its cost."""
_MAX_PROBE_ANSWERS = 20
_WORKER_START_SECONDS = 4.0
"""Time to start worker processes; trees that take less than twice as long are grown in this process."""


@dataclass(frozen=True)
class TreeCost:
    """Expected cost of a tree.

    Attributes
    ----------
    pairs, results
        Maximum numbers of pairs and results.
    seconds
        Expected processor time.
    """

    pairs: int
    results: int
    seconds: float

    def expected_time(self, jobs: int) -> float:
        """Return the expected time in seconds with this number of processes."""
        if not _is_divided(self.seconds, jobs):
            return self.seconds
        return _WORKER_START_SECONDS + self.seconds / jobs


def _is_divided(seconds: float, jobs: int) -> bool:
    return jobs > 1 and seconds > 2 * _WORKER_START_SECONDS


class CostProbe:
    """Timing of questions and results along a few random paths, from which the cost of any tree is estimated.

    Parameters
    ----------
    search
        Search without answers, which is not modified.
    answers
        Depth of the deepest tree; at most 20 answers of a path are timed.
    """

    def __init__(self, search: SearchState, answers: int) -> None:
        answers = min(answers, _MAX_PROBE_ANSWERS)
        _walk(search, answers, 0)  # compiles and loads kernels
        walks = [_walk(search, answers, seed) for seed in range(1, _PROBE_COUNT + 1)]
        # Other programs only lengthen times, so the minimum is the best estimate.
        self._question_seconds = np.min([question for question, _ in walks], axis=0)
        self._result_seconds = min(result for _, result in walks)

    def cost(self, answers: int) -> TreeCost:
        """Return the cost of a tree of this depth."""
        levels = np.arange(answers)
        per_question = self._question_seconds[np.minimum(levels, len(self._question_seconds) - 1)]
        seconds = float(np.sum(2.0**levels * per_question)) + 2.0**answers * self._result_seconds
        return TreeCost(2**answers - 1, 2**answers, seconds)


def _walk(search: SearchState, answers: int, seed: int) -> tuple[list[float], float]:
    """Return the seconds for each question on a random path, and for its result."""
    search = search.with_events(())  # a copy without cached values
    sides = np.random.default_rng(seed).integers(2, size=answers)
    times = [0.0] * answers
    for number, side in enumerate(sides.tolist()):
        start = time.perf_counter()
        query = search.next_query()
        times[number] = time.perf_counter() - start
        if query is None:
            break
        search = search.after_answer(query, query.right if side else query.left)
    start = time.perf_counter()
    result_of(search, RECOMMENDATION_COUNT)
    return times, time.perf_counter() - start


@dataclass(frozen=True, eq=False)
class BranchWork:
    """Parts of a tree for worker processes; a task grows one part, and its unit is the index of the part's path."""

    search: SearchState
    answers: int
    cut: tuple[tuple[AnswerPath, tuple[Event, ...]], ...]

    def begin(self) -> Callable[[Task], QuizTree]:
        """Return the function that grows a part."""

        def grow_part(task: Task) -> QuizTree:
            path, events = self.cut[task.unit]
            return grow(self.search.with_events(events), path, self.answers, RECOMMENDATION_COUNT)

        return grow_part

    def describe(self, task: Task) -> str:
        """Describe the part for error messages."""
        return f"the part of the quiz after the answers {self.cut[task.unit][0] or '(none)'}"


def compile_tree(
    search: SearchState,
    answers: int,
    *,
    seconds: float,
    jobs: int = 1,
    progress: Callable[[int], None] | None = None,
) -> QuizTree:
    """Compile the tree of a search: the query after every path of answers, and the result at the end of each path.

    Parameters
    ----------
    search
        Search without answers, which is not modified.
    answers
        Number of answers after which every path ends, unless a stop rule ends it earlier.
    seconds
        Expected processor time, as from `CostProbe.cost`; short compilations start no processes.
    jobs
        Number of processes; the tree does not depend on it.
    progress
        Function that is called with the number of results whenever a part is complete.
    """
    tree = grow(search, "", answers, RECOMMENDATION_COUNT, cut=min(_CUT_DEPTH, answers))
    report = progress or (lambda _: None)
    report(len(tree.results))

    def add(part: QuizTree) -> None:
        tree.add(part)
        report(len(tree.results))

    work = BranchWork(search, answers, tuple(tree.cut.items()))
    tasks = [Task(0, 0, unit) for unit in range(len(work.cut))]
    if _is_divided(seconds, jobs) and len(tasks) > 1:
        run_on_processes(work, tasks, add, jobs=min(jobs, len(tasks)), fate_of_results="nothing was written")
    else:
        grow_part = work.begin()
        for task in tasks:
            add(grow_part(task))
    return tree

"""Compilation of a quiz plan into a folder."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pairseek.quiz.compilation import compile_tree
from pairseek.quiz.content import quiz_record
from pairseek.quiz.folder import staging_folder
from pairseek.quiz.plan import QuizPlan
from pairseek.quiz.writing import write_quiz


@dataclass(frozen=True)
class CompiledQuiz:
    """Compiled quiz on disk.

    Attributes
    ----------
    folder
        Folder of its files.
    sizes
        Size in bytes of each file, and of all pictures together.
    pairs, results, items
        Numbers of pairs, results and items shown.
    seconds
        Time that the compilation took.
    """

    folder: Path
    sizes: dict[str, int]
    pairs: int
    results: int
    items: int
    seconds: float


def compile_quiz(
    plan: QuizPlan, out: Path, *, force: bool = False, progress: Callable[[int], None] | None = None
) -> CompiledQuiz:
    """Compile a quiz and write it into a folder, which appears only once it is complete.

    Parameters
    ----------
    plan
        Plan of the quiz.
    out
        Empty or missing folder.
    force
        Whether to replace a quiz in the folder.
    progress
        Function that is called with the number of results so far.
    """
    start = time.perf_counter()
    with staging_folder(out, force=force) as folder:
        tree = compile_tree(plan.search, plan.answers, seconds=plan.cost.seconds, jobs=plan.jobs, progress=progress)
        record, pictures = quiz_record(plan.source, tree, plan.answers, plan.seed)
        sizes = write_quiz(folder, record, pictures)
    seconds = time.perf_counter() - start
    return CompiledQuiz(out, sizes, len(tree.pairs), len(tree.results), len(tree.shown_items()), seconds)

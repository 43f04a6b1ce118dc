"""Compilation of a quiz plan into a folder: tree of questions, page, player and pictures."""

from __future__ import annotations

import html
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template

from pairseek.core.files import write_atomically
from pairseek.core.messages import words
from pairseek.core.types import JSON
from pairseek.quiz.compilation import compile_tree
from pairseek.quiz.content import quiz_record
from pairseek.quiz.folder import TREE_FILE, TREE_PREFIX, staging_folder
from pairseek.quiz.plan import QuizPlan
from pairseek.store.media import StoredPicture


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


PAGE_FILE = "index.html"
MODULE_FILE = "quiz.js"
PLAYER_FILE = "player.js"
PICTURE_FOLDER = "pictures"
_PAGE_FOLDER = Path(__file__).parent / "page"


def write_quiz(folder: Path, record: JSON, pictures: Sequence[StoredPicture]) -> dict[str, int]:
    """Write the files of a quiz; return the size in bytes of each file, and of all pictures together."""
    module, player = ((_PAGE_FOLDER / name).read_text(encoding="utf-8") for name in (MODULE_FILE, PLAYER_FILE))
    files = {TREE_FILE: tree_text(record), MODULE_FILE: module, PLAYER_FILE: player, PAGE_FILE: _page(record, module)}
    sizes = {}
    for name, text in files.items():
        write_atomically(folder / name, text)
        sizes[name] = len(text.encode())
    for picture in pictures:
        picture_folder = folder / PICTURE_FOLDER / picture.name
        picture_folder.mkdir(parents=True, exist_ok=True)
        write_atomically(picture_folder / f"{picture.width}.webp", picture.content)
    if pictures:
        sizes[PICTURE_FOLDER] = sum(len(picture.content) for picture in pictures)
    return sizes


def tree_text(record: JSON) -> str:
    """Return the tree as a script that assigns JSON, because pages opened from disk cannot load JSON files."""
    return TREE_PREFIX + json.dumps(record, ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n"


def _page(record: JSON, module: str) -> str:
    """Return the page, which contains the module, because browsers do not import modules from files."""
    messages = words(record["language"]).with_texts(record["words"])
    return Template((_PAGE_FOLDER / PAGE_FILE).read_text(encoding="utf-8")).substitute(
        language=record["language"],
        title=html.escape(record["title"]),
        noscript=html.escape(messages.say("quiz.noscript")),
        tree=TREE_FILE,
        player=PLAYER_FILE,
        module=module,
    )

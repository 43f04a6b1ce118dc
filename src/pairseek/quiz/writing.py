"""Files of a quiz: the tree of questions, the JavaScript that reads and plays it, the page and the pictures."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from pathlib import Path
from string import Template

from pairseek.core.files import write_atomically
from pairseek.core.messages import words
from pairseek.core.types import JSON
from pairseek.quiz.folder import TREE_FILE, TREE_PREFIX
from pairseek.store.media import StoredPicture

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

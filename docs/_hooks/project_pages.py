"""Pages of the site from CONTRIBUTING.md and CHANGELOG.md at the root of the repository."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

_FILES = {"CONTRIBUTING.md": "project/contributing.md", "CHANGELOG.md": "project/changelog.md"}
_ROOT = Path(__file__).resolve().parents[2]


def on_files(files: Files, *, config: Any, **_: Any) -> Files:
    """Add the pages, with links that lead to the pages of the site."""
    for name, place in _FILES.items():
        text = (_ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](../")
        for other, target in _FILES.items():
            text = text.replace(f"]({other}", f"](../{target}")
        files.append(File.generated(config, place, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Turn links to the files into links to their pages."""
    up = "../" * page.file.src_uri.count("/")
    for name, place in _FILES.items():
        markdown = re.sub(rf"\]\((?:\.\./)*{name}", f"]({up}{place}", markdown)
    return markdown

"""Pages of the site from notebooks: each is executed when the site is built, and shown with its outputs."""

from __future__ import annotations

import base64
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nbformat
from mkdocs.structure.files import File, Files
from nbclient import NotebookClient

_FOLDER = "notebooks"
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
_done: dict[str, tuple[str, dict[str, bytes]]] = {}


def on_files(files: Files, *, config: Any, **_: Any) -> Files:
    """Add a page for each notebook, and its pictures."""
    notebooks = {
        path: path.read_text(encoding="utf-8") for path in sorted((Path(config.docs_dir) / _FOLDER).glob("*.ipynb"))
    }
    new = [path for path, text in notebooks.items() if text not in _done]
    with ThreadPoolExecutor(max_workers=2) as pool:
        _done.update(zip((notebooks[path] for path in new), pool.map(render, new), strict=True))
    for path, text in notebooks.items():
        page, pictures = _done[text]
        files.append(File.generated(config, f"{_FOLDER}/{path.stem}.md", content=page))
        for name, content in pictures.items():
            files.append(File.generated(config, f"{_FOLDER}/{name}", content=content))
    return files


def render(path: Path) -> tuple[str, dict[str, bytes]]:
    """Execute a notebook and return it as Markdown, with its pictures by name.

    The metadata ``alt`` of a cell describes its figure for those who do not see it.
    """
    notebook = nbformat.read(path, as_version=4)
    if os.environ.get("PAIRSEEK_NOTEBOOKS") != "skip":  # for writers in a hurry
        place = {"metadata": {"path": path.parent}}
        quiet = ["--IPKernelApp.log_level=40"]
        NotebookClient(
            notebook, timeout=600, kernel_name="python3", resources=place, extra_arguments=quiet, coalesce_streams=True
        ).execute()
    pictures: dict[str, bytes] = {}
    parts: list[str] = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        alt = cell.metadata.get("alt", "")
        parts += [_output(output, path.stem, alt, pictures) for output in cell.outputs]
    parts.append(f"[Download this notebook]({path.name}){{ download }}")
    return "\n\n".join(parts) + "\n", pictures


def _output(output: Any, stem: str, alt: str, pictures: dict[str, bytes]) -> str:
    if output.output_type == "stream":
        # Standard error has the notice of a first compilation, which readers need not see.
        return _text(output.text) if output.name == "stdout" else ""
    data = output.get("data", {})
    if "image/png" in data:
        name = f"{stem}-{len(pictures) + 1}.png"
        pictures[name] = base64.b64decode(data["image/png"])
        return f"![{alt}]({name})"
    if "text/html" in data:
        return f'<div class="output" markdown="0">\n{data["text/html"]}\n</div>'
    return _text(data.get("text/plain", ""))


def _text(text: str) -> str:
    return f"```text\n{_ESCAPES.sub('', text).rstrip()}\n```"

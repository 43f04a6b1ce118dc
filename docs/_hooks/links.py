"""Links from names in the prose, such as `ps.Search`, to the API reference."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

_INIT = Path(__file__).resolve().parents[2] / "src" / "pairseek" / "__init__.py"
_SKIPPED = re.compile(r"(<pre.*?</pre>|<a\b.*?</a>|<h[1-6].*?</h[1-6]>|<autoref.*?</autoref>)", re.DOTALL)
_NAME = re.compile(r"<code>(ps\.)?(\w+)((?:\.\w+)?(?:\([^<]*\))?)</code>")


def public_names() -> frozenset[str]:
    """Return the names of ``pairseek.__all__``, without importing the package."""
    for node in ast.parse(_INIT.read_text()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return frozenset(ast.literal_eval(node.value)) - {"__version__"}
    raise LookupError(f"{_INIT} has no __all__")


_PUBLIC = public_names()


def on_page_content(content: str, *, page: Any, **_: Any) -> str:
    """Link every public name outside code blocks, headings and links, except in the API reference itself."""
    if page.file.src_uri.startswith("reference/api/"):
        return content
    parts = _SKIPPED.split(content)
    return "".join(part if i % 2 else _NAME.sub(_link, part) for i, part in enumerate(parts))


def _link(found: re.Match[str]) -> str:
    name = found[2]
    # A module such as `bounds` is an ordinary word where `ps.` is missing.
    if name not in _PUBLIC or (name.islower() and not found[1]):
        return found[0]
    return f'<autoref identifier="pairseek.{name}" optional>{found[0]}</autoref>'

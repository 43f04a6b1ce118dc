"""Links from names in the prose, such as `ps.Search` or `fit_noise(...)`, to the API reference."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).resolve().parents[2] / "src" / "pairseek"
# Modules whose public names have entries of their own.
_MODULES = ("client", "embed", "evaluate", "experiments", "indexes")
_SKIPPED = re.compile(r"(<pre.*?</pre>|<a\b.*?</a>|<h[1-6].*?</h[1-6]>|<autoref.*?</autoref>)", re.DOTALL)
_NAME = re.compile(r"<code>(?:(ps|pairseek)\.)?(\w+)(?:\.(\w+))?((?:\([^<]*)?)</code>")


def public_names(module: str = "") -> frozenset[str]:
    """Return the names of ``__all__`` of the package or of one of its modules, without importing it."""
    file = _PACKAGE / f"{module}.py"
    path = file if module and file.exists() else _PACKAGE / module / "__init__.py"
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return frozenset(ast.literal_eval(node.value)) - {"__version__"}
    raise LookupError(f"{path} has no __all__")


def _identifiers() -> dict[str, str]:
    """Return the identifiers of names that one module has, those of the package first."""
    parts = {module: public_names(module) for module in _MODULES}
    counts = Counter(name for names in parts.values() for name in names)
    found = {name: f"{module}.{name}" for module, names in parts.items() for name in names if counts[name] == 1}
    return found | {name: name for name in (*_MODULES, *public_names())}


_IDENTIFIERS = _identifiers()


def on_page_content(content: str, *, page: Any, **_: Any) -> str:
    """Link every public name outside code blocks, headings and links, except in the API reference itself."""
    if page.file.src_uri.startswith("reference/api/"):
        return content
    parts = _SKIPPED.split(content)
    return "".join(part if i % 2 else _NAME.sub(_link, part) for i, part in enumerate(parts))


def _link(found: re.Match[str]) -> str:
    package, name, member, call = found.groups()
    identifier = _IDENTIFIERS.get(name)
    if package and name in _MODULES and member in public_names(name):
        identifier = f"{name}.{member}"
    # A name such as `bounds` or `check` is an ordinary word where neither the package nor arguments are written.
    if identifier is None or (name.islower() and not (package or call or "_" in name)):
        return found[0]
    return f'<autoref identifier="pairseek.{identifier}" optional>{found[0]}</autoref>'

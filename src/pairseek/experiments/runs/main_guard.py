"""Check for a main guard in scripts that start worker processes."""

from __future__ import annotations

import ast
import os
import sys
from pathlib import Path
from types import FrameType

from pairseek.errors import PairseekError

_MODULE_NAME = "__name__"


def require_main_guard() -> None:
    """Raise an error if worker processes would run the calling script again.

    A worker imports the script that started it. Without ``if __name__ == "__main__":`` it would itself reach the call
    that starts workers. Unreadable scripts pass, and so do interactive sessions, which workers do not import.
    """
    module = sys.modules.get("__main__")
    path = getattr(module, "__file__", None)
    spec = getattr(module, "__spec__", None)
    # Workers do not import the `__main__.py` of a package.
    if path is None or (spec is not None and spec.name.endswith(".__main__")):
        return
    line = _executing_line(os.path.abspath(path))
    if line is not None and not _is_guarded(Path(path), line):
        raise PairseekError(
            f"{path}, line {line}, starts worker processes, which import this file and would run it again: put "
            f'what the script does below `if __name__ == "__main__":`'
        )


def _executing_line(path: str) -> int | None:
    """Return the line of the script that is being executed; None if the call does not come from the script."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        code = frame.f_code
        if code.co_name == "<module>" and os.path.abspath(code.co_filename) == path:
            return frame.f_lineno
        frame = frame.f_back
    return None


def _is_guarded(path: Path, line: int) -> bool:
    """Return whether the script tests the name of the module at or before the line."""
    try:
        script = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return True
    conditions = [node.test for node in script.body if isinstance(node, ast.If) and node.lineno <= line]
    return any(isinstance(part, ast.Name) and part.id == _MODULE_NAME for test in conditions for part in ast.walk(test))

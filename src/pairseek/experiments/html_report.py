"""Self-contained HTML reports: document shell, base style, embedded images and file output."""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence
from pathlib import Path

from pairseek._version import __version__
from pairseek.core.files import write_atomically
from pairseek.errors import InvalidFile

_MEDIA_TYPES = {".svg": "image/svg+xml", ".png": "image/png", ".gif": "image/gif"}
_STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.55 system-ui, sans-serif; color: #16161d; max-width: 68rem;
  margin: 2.5rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.7rem; margin-bottom: .2rem; } p.quiet { color: #55555f; }
img { max-width: 100%; height: auto; } table { border-collapse: collapse; }
"""


def write_html(path: Path, title: str, body: Sequence[str], *, subtitle: str = "", style: str = "") -> Path:
    """Write a self-contained page.

    Parameters
    ----------
    path
        Path of the file, which is replaced atomically.
    title
        Title of the document and text of its heading; plain text.
    body
        HTML elements below the heading.
    subtitle
        Plain text that follows the version of pairseek below the heading.
    style
        CSS rules in addition to the base style.
    """
    name = html.escape(title)
    version = html.escape(", ".join(filter(None, (f"pairseek {__version__}", subtitle))))
    page = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{name}</title><style>{_STYLE}{style}</style></head>\n<body>\n"
        f'<h1>{name}</h1>\n<p class="quiet">{version}</p>\n' + "\n".join(body) + "\n</body></html>\n"
    )
    try:
        write_atomically(path, page)
    except OSError as error:
        raise InvalidFile(f"cannot write {path}: {error.strerror or error}") from error
    return path


def image(data: bytes, suffix: str, alt: str) -> str:
    """Return an ``img`` element with the image embedded; ``suffix`` is its file suffix, such as ``.svg``."""
    encoded = base64.b64encode(data).decode()
    return f'<img alt="{html.escape(alt)}" src="data:{_MEDIA_TYPES[suffix]};base64,{encoded}">'

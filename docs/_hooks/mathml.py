"""MathML from TeX when the site is built, so that equations need no script and no fonts."""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert

_MATHS = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def on_page_content(content: str, **_: Any) -> str:
    """Replace the equations that arithmatex marked by MathML."""
    return _MATHS.sub(_mathml, content)


def _mathml(found: re.Match[str]) -> str:
    display = found[1] == "div"
    maths = convert(html.unescape(found[2]).strip(), display="block" if display else "inline")
    return f'<div class="equation" tabindex="0">{maths}</div>' if display else maths

"""Rendering of pages from templates, contexts and message catalogues."""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from types import MappingProxyType

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from pairseek.core.messages import DEFAULT, Message, Words, words
from pairseek.core.text import initial
from pairseek.errors import MissingExtra
from pairseek.web.pages.contexts.slide import Slide
from pairseek.web.pages.group_map import colour_of, draw_group_map, mark_path
from pairseek.web.pages.map import draw_map
from pairseek.web.pages.slide import draw_slide, text_runs

FOLDER = Path(__file__).parent
STATIC = FOLDER / "static"


def render(
    page: str,
    data: Mapping[str, object],
    *,
    language: str = DEFAULT,
    texts: Mapping[str, Message] = MappingProxyType({}),
) -> str:
    """Render a page as HTML; ``page`` names the template, ``data`` is its context, and ``texts`` replace messages."""
    catalogue = words(language).with_texts(texts)
    template = _environment().get_template(f"{page}.html")
    return template.render(
        data, t=catalogue.say, said=lambda error: sentence(catalogue.translated(error)), words=catalogue, page=page
    )


def render_report(data: Mapping[str, object], *, language: str = DEFAULT) -> str:
    """Render the report of a study as a self-contained file; ``data`` is a `ReportPage`."""
    # Safe to embed, because our style sheets contain no "</".
    styles = Markup("".join((STATIC / name).read_text(encoding="utf-8") for name in ("report.css", "findings.css")))
    return render("_report", {**data, "styles": styles}, language=language)


def render_slide(slide: Slide, *, language: str = DEFAULT) -> str:
    """Render the slide about a ranking as a self-contained SVG drawing."""
    catalogue = words(language)
    template = _environment().get_template("_slide.svg")
    return template.render(slide=slide, t=catalogue.say, words=catalogue)


def plotly_script() -> Path:
    """Return the path of Plotly's script in the plotly package."""
    spec = importlib.util.find_spec("plotly")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra("the plots of the dashboard", "web")
    return Path(spec.submodule_search_locations[0]) / "package_data" / "plotly.min.js"


def in_script(value: object) -> Markup:
    """Return JSON that is safe inside a script element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


@cache
def static_address(name: str) -> str:
    """Return the URL of a file of `STATIC` with a hash of its content."""
    digest = hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:10]
    return f"/static/{name}?v={digest}"


def sentence(text: str) -> str:
    """Return a text with a capital letter, unless it begins with something other than a word, such as a file name.

    Examples
    --------
    >>> sentence("the zip is damaged"), sentence("wine.csv is empty")
    ('The zip is damaged', 'wine.csv is empty')
    """
    return text[:1].upper() + text[1:] if text.split(" ", 1)[0].replace("’", "").isalpha() else text


def short_time(moment: str | datetime | None, catalogue: Words) -> str:
    """Format a time to the minute in the given language."""
    if moment is None:
        return "–"
    when = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    return when.strftime(catalogue.say("date.minute"))


def option(value: str) -> tuple[str, str]:
    """Return a form option whose label is its value."""
    return value, value


def labelled_option(value: str, catalogue: Words, prefix: str) -> tuple[str, str]:
    """Return a form option: its value, and the message of that name below a prefix as its label."""
    return value, catalogue.say(f"{prefix}{value}")


def language_name(language: str) -> str:
    """Return the name of a language in the language itself."""
    return words(language).say("language.name")


def language_option(language: str) -> tuple[str, str]:
    """Return a form option: a language and its name."""
    return language, language_name(language)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["in_script"] = in_script
    environment.filters["short_time"] = short_time
    environment.filters["initial"] = initial
    environment.filters["option"] = option
    environment.filters["labelled_option"] = labelled_option
    environment.filters["language_option"] = language_option
    environment.globals["language_name"] = language_name
    environment.globals["static"] = static_address
    environment.globals["draw_map"] = draw_map
    environment.globals["draw_slide"] = draw_slide
    environment.globals["text_runs"] = text_runs
    environment.globals |= {"draw_group_map": draw_group_map, "colour_of": colour_of, "mark_path": mark_path}
    return environment

"""Pages: templates, style sheets and scripts.

Pages depend on neither the database nor the search. The service passes one of the contexts in
`pairseek.web.pages.contexts` to `render`, and serves the folder `STATIC` under ``/static``.
"""

from pairseek.core.messages import Words, languages, preferred_language, words
from pairseek.web.pages.rendering import STATIC, plotly_script, render, render_report, render_slide
from pairseek.web.pages.slide import png_of

__all__ = [
    "STATIC",
    "Words",
    "languages",
    "plotly_script",
    "png_of",
    "preferred_language",
    "render",
    "render_report",
    "render_slide",
    "words",
]

"""Pages: templates, style sheets, scripts and message catalogues.

Nothing here knows a database or a search. The service hands plain data (`pairseek.web.pages.contexts`) to `render`, and
serves the folder `STATIC` under ``/static``.
"""

from pairseek.web.pages.rendering import STATIC, plotly_script, render
from pairseek.web.pages.text import Words, languages, preferred_language, words

__all__ = ["STATIC", "Words", "languages", "plotly_script", "preferred_language", "render", "words"]

"""Branding of a study's pages for participants: accent colour and logo.

A colour with too little contrast is shown in the nearest shade that has enough, so any colour can be chosen.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TypeAlias

from pairseek.store.media import StoredPicture
from pairseek.web.studies.media import copies

LOGO_PREFIX = "logo-"
"""Beginning of the stored name of a logo, which tells it from the pictures of items."""
MIN_CONTRAST = 4.5
"""Contrast of text that WCAG 2 requires at level AA."""
# Backgrounds of `base.css`, by colour scheme: of the page, and of cards.
_LIGHT_GROUNDS = ((247, 247, 247), (255, 255, 255))
_DARK_GROUNDS = ((19, 19, 19), (29, 29, 29))
_WHITE = (255, 255, 255)
_BLACK = (0, 0, 0)
_TEXT_ON_DARK = (13, 13, 13)
# Share of the accent in the wash behind text of that colour.
_WASH_SHARE = 0.1
# Steps from a colour to black or white.
_SHADE_STEPS = 100

RGB: TypeAlias = tuple[int, int, int]


@dataclass(frozen=True)
class Shade:
    """Colours of one scheme as #rrggbb: the accent, text on the accent, and the tint behind text of the accent."""

    accent: str
    on_accent: str
    wash: str


def shades(colour: str) -> tuple[Shade, Shade]:
    """Return the shades of a colour (#rrggbb) for light and for dark pages."""
    return _shade(colour, _LIGHT_GROUNDS, _BLACK, _WHITE), _shade(colour, _DARK_GROUNDS, _WHITE, _TEXT_ON_DARK)


def contrast(first: str, second: str) -> float:
    """Return the contrast of two colours (#rrggbb) by WCAG 2, from 1 to 21."""
    lighter, darker = sorted((_luminance(_rgb(first)), _luminance(_rgb(second))), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def style_sheet(colour: str) -> str:
    """Return the style sheet that gives pages a colour."""
    light, dark = (
        f":root {{ --accent: {shade.accent}; --on-accent: {shade.on_accent}; --wash: {shade.wash}; }}"
        for shade in shades(colour)
    )
    return f"{light}\n@media (prefers-color-scheme: dark) {{ {dark} }}\n"


def logo_copies(content: bytes) -> list[StoredPicture]:
    """Return the stored copies of a logo in every size."""
    name = LOGO_PREFIX + sha256(content).hexdigest()[:32]
    return [replace(copy, name=name) for copy in copies(0, name, content, "logo")]


def _shade(colour: str, grounds: tuple[RGB, RGB], towards: RGB, on_accent: RGB) -> Shade:
    """Return the shade nearest to a colour that is legible on the backgrounds and its tint, and on which text is."""
    chosen = _rgb(colour)
    for step in range(_SHADE_STEPS + 1):
        accent = _mixed(chosen, towards, step / _SHADE_STEPS)
        wash = _mixed(grounds[1], accent, _WASH_SHARE)
        shade = Shade(_hex(accent), _hex(on_accent), _hex(wash))
        backgrounds = (*map(_hex, grounds), shade.wash, shade.on_accent)
        if all(contrast(shade.accent, background) >= MIN_CONTRAST for background in backgrounds):
            return shade
    raise AssertionError(f"{colour} has no readable shade")


def _luminance(colour: RGB) -> float:
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in (x / 255 for x in colour)
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _mixed(first: RGB, second: RGB, share: float) -> RGB:
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(first, second, strict=True))
    return red, green, blue


def _rgb(colour: str) -> RGB:
    red, green, blue = bytes.fromhex(colour.removeprefix("#"))
    return red, green, blue


def _hex(colour: RGB) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)

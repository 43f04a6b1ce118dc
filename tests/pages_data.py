"""Canned data for every page, in the shapes of `pairseek.web.pages.data`."""

from __future__ import annotations

import colorsys
import math

NAMES = "Moss Clay Ash Plum Teal Sand Rust Fog Ink Rose Fern Slate Coral Straw Wine Mint".split()
TEXTS = [
    "A quiet flat near the park, third floor, no lift, with a balcony that has the sun until noon.",
    "A house at the edge of town with a small garden. Forty minutes by train.",
]


def colour(number: int) -> str:
    r, g, b = colorsys.hls_to_rgb((number * 0.381966) % 1, 0.35 + 0.4 * ((number * 7) % 11) / 11, 0.45)
    return f"#{round(r * 255):02x}{round(g * 255):02x}{round(b * 255):02x}"


def label(number: int) -> str:
    return f"{NAMES[number % len(NAMES)]} {number}"


def card(number: int, kind: str = "colour") -> dict:
    empty = dict.fromkeys(("label", "text", "html", "colour", "image", "audio", "video"))
    made = {"id": f"i{number}", **empty}
    if kind == "colour":
        return made | {"label": label(number), "colour": colour(number)}
    if kind == "image":
        image = {"src": f"/picture/{number}.svg", "srcset": None, "width": 600, "height": 450}
        return made | {"label": label(number), "image": image | {"alt": f"Drawing {number}"}}
    if kind == "text":
        return made | {"text": TEXTS[number % 2]}
    if kind == "html":
        return made | {"label": label(number), "html": f"<p>Oats, <em>{label(number)}</em> and milk.</p>"}
    return made | {"label": label(number)}


def picture(number: int) -> str:
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="600" height="450"><rect width="600" height="450" '
        f'fill="{colour(number)}"/><circle cx="300" cy="225" r="{60 + number % 100}" fill="{colour(number + 5)}"/></svg>'
    )


def near_colours() -> list[dict]:
    return [{"card": card(n), "probability": p} for n, p in [(4, 0.41), (9, 0.22), (20, 0.11), (33, 0.05)]]


def dots(count: int = 300) -> list[list]:
    """A sunflower of items."""
    turn = math.pi * (3 - math.sqrt(5))
    return [
        [math.sqrt(n / count) * math.cos(n * turn), math.sqrt(n / count) * math.sin(n * turn), colour(n), label(n)]
        for n in range(count)
    ]


def ellipse(x: float, y: float, wide: float, high: float) -> list[list[float]]:
    return [[x + wide * math.cos(a * math.pi / 16), y + high * math.sin(a * math.pi / 16)] for a in range(32)]

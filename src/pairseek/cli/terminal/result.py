"""Result of the demo: the estimated colour, the nearest names and their probabilities."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from pairseek.cli.terminal.swatches import Colour, bar, card, in_true_colour, side_by_side, swatch
from pairseek.core.text import plural
from pairseek.datasets import hex_from_oklab
from pairseek.estimates import Estimate
from pairseek.model.items import Items
from pairseek.search import Search

_WIDEST = 76
_SHOWN = 5
_HEIGHT = 7


def colour_of(items: Items, row: int) -> Colour:
    """Return the named colour in this row."""
    return Colour(items.labels[row], str(items.data["hex"][row]))


def found_colour(items: Items, estimate: Estimate) -> Colour:
    """Return the estimated colour with the nearest name."""
    nearest = int(np.argmin(np.linalg.norm(items.coordinates - estimate.point, axis=1)))
    return Colour(f"near {items.labels[nearest]}", hex_from_oklab(estimate.point))


@dataclass(frozen=True, slots=True)
class Result:
    """Renderable result of a finished search.

    Attributes
    ----------
    search
        The search, over the named colours.
    target
        Row of the favourite colour of a simulated user; None for a person.
    """

    search: Search
    target: int | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield lines that fit the width of the terminal."""
        width = min(options.max_width - 4, _WIDEST)
        for line in self._lines(console, max(width, 20)):
            yield Text.assemble("  " if line.plain else "", line, no_wrap=True, overflow="crop")

    def _lines(self, console: Console, width: int) -> Iterable[Text]:
        items, estimate = self.search.items, self.search.estimate()
        assert isinstance(items, Items)
        found = found_colour(items, estimate)
        draw = swatch if in_true_colour(console) else card
        yield Text()
        if self.target is None:
            yield from draw(found, width, _HEIGHT, title="Your colour")
        else:
            each, wanted = (width - 2) // 2, colour_of(items, self.target)
            yield from side_by_side(
                [draw(found, each, _HEIGHT, title="Found"), draw(wanted, each, _HEIGHT, title="Favourite")], 2
            )
        yield Text()
        yield from self._names(console, items, width)
        yield Text()
        summary = f"{plural(self.search.answers, 'answer')}  ·  95 % radius {estimate.credible_radius(0.95):.3f}"
        yield Text(summary, "dim")
        if self.target is not None:
            yield Text()
            for line in textwrap.wrap(_closeness(items, estimate, self.target), width):
                yield Text(line)

    def _names(self, console: Console, items: Items, width: int) -> Iterable[Text]:
        near = sorted(self.search.recommend(items.n), key=lambda one: one.distance)[:_SHOWN]
        most = max(one.probability for one in near)
        colours = [colour_of(items, items.index(one.id)) for one in near]
        coloured = in_true_colour(console)
        code = 9 if not coloured or width >= 60 else 0
        chip = 5 if coloured else 0
        name = min(max(len(colour.name) for colour in colours), width - chip - code - 9)
        length = max(0, min(width - chip - name - code - 10, 40))
        for line in textwrap.wrap(f"The nearest names, with their probability to be the best of {items.n}", width):
            yield Text(line, "bold")
        yield Text()
        for one, colour in zip(near, colours, strict=True):
            label = Text(colour.name)
            label.truncate(name, overflow="ellipsis", pad=True)
            share = one.probability / most if most > 0 else 0.0
            yield Text.assemble(
                Text(" " * (chip - 1), f"on {colour.hex}") if coloured else "",
                " " if coloured else "",
                label,
                (f"  {colour.hex}", "dim") if code else "",
                "  " if length else "",
                # The bar has the colour of the text, because dark colours are invisible on a dark terminal.
                bar(share, length),
                f" {one.probability:6.1%}".replace("%", " %"),
            )


def _closeness(items: Items, estimate: Estimate, target: int) -> str:
    wanted = colour_of(items, target)
    distances = np.linalg.norm(items.coordinates - items.coordinates[target], axis=1)
    distance = float(np.linalg.norm(estimate.point - items.coordinates[target]))
    farther = f"{np.mean(distances > distance):.0%}".replace("%", " %")
    return (
        f"The simulated user's favourite is {wanted.name} {wanted.hex}. The estimate is within {distance:.3f} of it, "
        f"closer than {farther} of the names."
    )

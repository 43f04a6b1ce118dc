"""Style, layout and file output of figures.

Each strategy has its own colour; variants such as ActRank-1 and ActRank-3 share the colour and differ in dash pattern.
Most colours are from Okabe and Ito's palette, which people with common colour deficiencies can distinguish.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairseek.errors import InvalidFile, MissingExtra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {
    "InfoGain": "#0072B2",
    "EPMV": "#D55E00",
    "MCMV": "#009E73",
    "Random": "#000000",
    "GaussCloud": "#E69F00",
    "ActRank": "#CC79A7",
    "GreedyMSE": "#56B4E9",
    "GreedyVolume": "#8C6D1F",
    "EUBO": "#882255",
    "GaussSearch": "#7F7F7F",
}
_OTHER_COLOURS = ("#56B4E9", "#8C6D1F", "#7F7F7F", "#CC79A7", "#E69F00", "#009E73", "#D55E00", "#0072B2")
_DASHES: tuple[Any, ...] = ("-", (0, (5, 1.6)), (0, (1.2, 1.4)), (0, (5, 1.5, 1.2, 1.5)))
_MARKERS = {
    "InfoGain": "o",
    "EPMV": "s",
    "MCMV": "^",
    "Random": "D",
    "GaussCloud": "v",
    "ActRank": "P",
    "GreedyMSE": "<",
    "GreedyVolume": ">",
    "EUBO": "X",
    "GaussSearch": "p",
}
INK = "#16161d"
FAINT = "#8a8a92"
_RC_PARAMETERS: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e8",
    "grid.linewidth": 0.7,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "svg.hashsalt": "pairseek",
}


@dataclass(frozen=True)
class Line:
    """Line style of a strategy."""

    colour: str
    dash: Any
    marker: str

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of matplotlib's `plot` and `errorbar`."""
        return {"color": self.colour, "linestyle": self.dash, "marker": self.marker, "markersize": 4}


def line_style(label: str, labels: Sequence[str]) -> Line:
    """Return the line style of a strategy, given all labels in the figure."""
    family, number = _family(label), label.rpartition("-")[2]
    if family in COLOURS:
        numbers = sorted({_number(other) for other in labels if _family(other) == family})
        position = numbers.index(_number(label)) if number.isdigit() else 0
        return Line(COLOURS[family], _DASHES[position % len(_DASHES)], _MARKERS.get(family, "X"))
    # Other labels, such as a strategy at several rates, take their colour from their first word, and their dash from
    # their position among labels with this word.
    root = label.partition(" ")[0]
    same_root = [other for other in labels if other.partition(" ")[0] == root]
    other_roots = list(
        dict.fromkeys(other.partition(" ")[0] for other in labels if other.partition(" ")[0] not in COLOURS)
    )
    colour = COLOURS.get(root) or _OTHER_COLOURS[other_roots.index(root) % len(_OTHER_COLOURS)]
    return Line(colour, _DASHES[same_root.index(label) % len(_DASHES)], _MARKERS.get(root, "X"))


def _family(label: str) -> str:
    head, _, tail = label.rpartition("-")
    return head if head and tail.isdigit() else label


def _number(label: str) -> int:
    tail = label.rpartition("-")[2]
    return int(tail) if tail.isdigit() else 0


@contextlib.contextmanager
def drawing() -> Iterator[None]:
    """Apply the style while figures are drawn and saved."""
    try:
        import matplotlib
    except ModuleNotFoundError:
        raise MissingExtra("drawing figures", "plots") from None
    with matplotlib.rc_context(_RC_PARAMETERS):
        yield


def require_drawing() -> None:
    """Raise `MissingExtra` if figures cannot be drawn; call it before the first run."""
    with drawing():
        pass


@dataclass(frozen=True, eq=False)
class NamedFigure:
    """A matplotlib figure with its file name and caption."""

    name: str
    caption: str
    figure: Figure


@dataclass(frozen=True)
class SavedFigure:
    """A figure on disk: name, caption and files."""

    name: str
    caption: str
    paths: tuple[Path, ...]


def save(figures: Sequence[NamedFigure], folder: Path) -> list[SavedFigure]:
    """Write each figure as PNG and SVG."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return [SavedFigure(named.name, named.caption, tuple(_write(named, folder))) for named in figures]
    except OSError as error:
        raise InvalidFile(f"cannot write figures to {folder}: {error.strerror or error}; the table is kept") from error


def _write(named: NamedFigure, folder: Path) -> Iterator[Path]:
    for ending in ("png", "svg"):
        path = folder / f"{named.name}.{ending}"
        metadata: dict[str, Any] = {"Date": None} if ending == "svg" else {}
        named.figure.savefig(path, dpi=160, metadata=metadata)
        yield path


def canvas(width: float, height: float, rows: int = 1, columns: int = 1, **options: Any) -> tuple[Figure, list[Axes]]:
    """Return a figure and its axes, row by row, laid out without overlaps."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **options)
    return figure, list(axes.ravel())


def legend_outside(figure: Figure, *axes: Axes, over: str = "") -> None:
    """Add a legend for these axes to the right of the figure.

    `over` says what lines and bands average over, such as ``"users"``; empty leaves the explanation out.
    """
    handles = [handle for panel in axes for handle in panel.get_legend_handles_labels()[0]]
    title = f"line: mean over {over}\nband: ± 1 standard error\n" if over else None
    figure.legend(handles=handles, loc="outside right center", handlelength=3.2, title=title)


_TICK_STEPS: tuple[tuple[float, ...], ...] = (
    (1,),
    (1, 3),
    (1, 2, 5),
    (1, 2, 3, 5, 7),
    (1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9),
    tuple(1 + 0.2 * i for i in range(45)),
)

_MIN_TICK_SPACING = 0.06
"""Smallest distance between two ticks, as a fraction of the axis."""


def set_log_scale(axes: Axes, values: Sequence[float], *, axis: str = "y") -> None:
    """Make an axis logarithmic over these values, with at least four ticks in decimal notation."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    getattr(axes, f"set_{axis}scale")("log")
    low, high = min(values), max(values)
    if high / low > 1e4:
        return
    ticks: list[float] = []
    for steps in _TICK_STEPS:
        ticks = [m * 10.0**e for e in range(-12, 13) for m in steps if low <= m * 10.0**e <= high * (1 + 1e-9)]
        if len(ticks) >= 4:
            break
    # Just below a power of ten, the finest steps are closer together than the height of their labels.
    spaced: list[float] = []
    for tick in reversed(ticks):
        if not spaced or math.log(spaced[-1] / tick) > _MIN_TICK_SPACING * math.log(high / low):
            spaced.append(tick)
    matplotlib_axis = getattr(axes, f"{axis}axis")
    matplotlib_axis.set_major_locator(FixedLocator(spaced))
    matplotlib_axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))
    matplotlib_axis.set_minor_locator(NullLocator())
    getattr(axes, f"set_{axis}lim")(low, high)

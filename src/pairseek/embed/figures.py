"""Figure of triplet error against dimension."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pairseek.errors import InvalidFile
from pairseek.experiments.figure_style import INK, canvas, drawing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pairseek.embed.dimension import DimensionChoice

_CHOSEN_COLOUR = "#D55E00"


def write_dimensions(choice: DimensionChoice, path: Path) -> Path:
    """Draw the triplet error against dimension, with standard errors and the chosen dimension."""
    with drawing():
        figure, (axes,) = canvas(6.6, 3.4)
        mean, error = choice.mean, choice.standard_error
        axes.errorbar(choice.dimensions, mean, error, color=INK, marker="o", markersize=5, linewidth=1.5, capsize=3)
        best = int(mean.argmin())
        level = float(mean[best] + error[best])
        axes.axhline(level, color=INK, linewidth=1, linestyle=(0, (1.2, 1.4)))
        position = choice.dimensions.index(choice.chosen)
        axes.plot(
            [choice.chosen],
            [mean[position]],
            color=_CHOSEN_COLOUR,
            marker="o",
            markersize=11,
            fillstyle="none",
            markeredgewidth=2,
            linestyle="none",
            label=f"chosen: d = {choice.chosen}",
        )
        axes.annotate(
            "lowest + one standard error",
            (choice.dimensions[-1], level),
            xytext=(0, 4),
            textcoords="offset points",
            ha="right",
            fontsize=8,
        )
        axes.set_xticks(choice.dimensions)
        axes.set_xlabel("dimension")
        axes.set_ylabel("triplet error fraction")
        axes.set_title(f"{choice.method.upper()}, {choice.errors.shape[1]} folds: held-out triplets violated")
        axes.legend(loc="upper right")
        return save_figure(figure, path)


def save_figure(figure: Figure, path: Path) -> Path:
    """Write the figure in the format that the file suffix names."""
    try:
        figure.savefig(path, dpi=160)
    except (OSError, ValueError) as error:
        raise InvalidFile(f"cannot write the figure {path}: {error}") from error
    return path

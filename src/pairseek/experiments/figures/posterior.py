"""Figure 1 of the paper: paired comparisons as noisy planes and their posterior, in two dimensions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pairseek.core.types import FloatArray
from pairseek.errors import InvalidFile
from pairseek.experiments.figure_style import FAINT, INK, NamedFigure, SavedFigure, canvas
from pairseek.model.items import Items
from pairseek.model.priors import UniformBox
from pairseek.model.responses import Logistic, hyperplanes
from pairseek.pairs.sources import SampledPairs
from pairseek.pairs.strategies import InfoGain
from pairseek.search import Search
from pairseek.search.simulate import SimulatedUser

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ANSWERS = 12
NOISE_CONSTANT = 8.0
"""Noise constant at which the posterior looks like the cell of the answers with blurred edges."""
_USER_POINT = (0.35, -0.3)
_GRID_SIDE = 241
_FRAMES_PER_SECOND = 1.5
_POSTERIOR_COLOUR = "#0072B2"
_WRONG_COLOUR = "#D55E00"


@dataclass(frozen=True, eq=False)
class PosteriorExample:
    """A search in two dimensions: the planes of its queries, and its posterior after each answer.

    Attributes
    ----------
    point
        (2,) true user point.
    normals, thresholds
        (m, 2) and (m,) planes, oriented towards the winner.
    estimates
        (m + 1, 2) estimates after 0, 1, ..., m answers.
    log_density
        (m + 1, side, side) log density of the posterior up to a constant; rows run along the second coordinate.
    """

    point: FloatArray
    normals: FloatArray
    thresholds: FloatArray
    estimates: FloatArray
    log_density: FloatArray

    @property
    def correct(self) -> FloatArray:
        """(m,) whether each answer agrees with the noiseless answer."""
        return np.asarray(self.normals @ self.point >= self.thresholds)


def _grid() -> FloatArray:
    axis = np.linspace(-1, 1, _GRID_SIDE)
    return np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)


def simulate_example(items: Items, *, answers: int = ANSWERS, seed: int = 5) -> PosteriorExample:
    """Simulate an InfoGain search for a fixed user point, with normalized noise."""
    response = Logistic(NOISE_CONSTANT, "normalized")
    search = Search(
        items,
        response=response,
        prior=UniformBox(-1.0, 1.0),
        strategy=InfoGain(),
        candidates=SampledPairs(count=20_000),
        rng=seed,
    )
    user = SimulatedUser(_USER_POINT, response, rng=seed)
    grid = _grid()
    logs, estimates, planes = [np.zeros(len(grid))], [search.estimate().point], []
    for _ in range(answers):
        query = search.ask()
        winner = user.answer(items, query)
        search.tell(query, winner=winner)
        loser = query.right if winner == query.left else query.left
        first, second = (items.coordinates[[items.index(side)]] for side in (winner, loser))
        planes.append(hyperplanes(first, second))
        slopes, offsets = response.planes(first, second)
        logs.append(logs[-1] + response.log_probability(grid @ slopes[0] + offsets[0]))
        estimates.append(search.estimate().point)
    normals, thresholds = (np.concatenate(parts) for parts in zip(*planes, strict=True))
    density = np.array(logs).reshape(answers + 1, _GRID_SIDE, _GRID_SIDE)
    return PosteriorExample(user.point, normals, thresholds, np.array(estimates), density)


def draw_posterior(example: PosteriorExample) -> NamedFigure:
    """Draw the cell of the noiseless answers (left), and the noisy answers with their posterior (right)."""
    figure, (left, right) = canvas(8.4, 4.5, 1, 2)
    count = len(example.normals)
    _draw_cell(left, example)
    _draw_planes(left, example, count, wrong=False)
    left.set_title("answers without noise: a cell")
    _draw_density(right, example.log_density[-1])
    _draw_planes(right, example, count, wrong=True)
    _draw_mark(right, example.estimates[-1], "+", INK, 110, 2.0)
    errors = int(np.sum(~np.asarray(example.correct, dtype=bool)))
    right.set_title(f"noisy answers: a posterior ({errors} of {count} wrong)")
    for axes in (left, right):
        _draw_frame(axes, example.point)
    caption = (
        f"{count} paired comparisons as planes, chosen by InfoGain. x: the user point; +: the estimate; dashed: planes "
        f"whose answer was wrong. Without noise the answers single out a cell; with noise, a posterior around it."
    )
    return NamedFigure("figure1", caption, figure)


def _draw_cell(axes: Axes, example: PosteriorExample) -> None:
    from matplotlib.colors import ListedColormap

    sides = np.where(np.asarray(example.correct, dtype=bool), 1.0, -1.0)
    inside = np.all((_grid() @ example.normals.T - example.thresholds) * sides >= 0, axis=1).reshape(
        _GRID_SIDE, _GRID_SIDE
    )
    axis = np.linspace(-1, 1, _GRID_SIDE)
    shade = ListedColormap([_POSTERIOR_COLOUR])
    axes.contourf(axis, axis, inside.astype(float), levels=[0.5, 1.5], cmap=shade, alpha=0.45)


def _draw_density(axes: Axes, log_density: FloatArray) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    shades = LinearSegmentedColormap.from_list("posterior", ["#ffffff", "#9cc6e3", _POSTERIOR_COLOUR, "#08306b"])
    weights = np.exp(log_density - log_density.max())
    top = 1.0 if np.ptp(weights) > 0 else 3.0
    axes.imshow(weights, origin="lower", extent=(-1, 1, -1, 1), cmap=shades, vmin=0, vmax=top, interpolation="bilinear")


def _draw_planes(axes: Axes, example: PosteriorExample, count: int, *, wrong: bool) -> None:
    for index in range(count):
        normal, threshold = example.normals[index], example.thresholds[index]
        foot = normal * threshold / (normal @ normal)
        along = 4.0 * np.array([-normal[1], normal[0]]) / np.linalg.norm(normal)
        ends = np.stack([foot - along, foot + along])
        is_wrong = wrong and not example.correct[index]
        axes.plot(
            *ends.T,
            color=_WRONG_COLOUR if is_wrong else INK,
            linewidth=1.3 if is_wrong else 0.8,
            linestyle="--" if is_wrong else "-",
            alpha=0.9 if is_wrong else 0.55,
        )


def _draw_mark(axes: Axes, point: FloatArray, marker: str, colour: str, size: float, width: float) -> None:
    axes.scatter(point[:1], point[1:], marker=marker, s=size, color=colour, linewidths=width, zorder=5)


def _draw_frame(axes: Axes, point: FloatArray) -> None:
    _draw_mark(axes, point, "x", "white", 80, 4.5)
    _draw_mark(axes, point, "x", INK, 70, 2.2)
    axes.set_xlim(-1, 1)
    axes.set_ylim(-1, 1)
    axes.set_aspect("equal")
    axes.grid(visible=False)
    axes.set_xticks([-1, 0, 1])
    axes.set_yticks([-1, 0, 1])
    for spine in axes.spines.values():
        spine.set_visible(True)
        spine.set_color(FAINT)


def animate(example: PosteriorExample, folder: Path) -> SavedFigure:
    """Write the posterior after 0, 1, 2, ... answers as an animated GIF."""
    from matplotlib.animation import PillowWriter

    figure, (axes,) = canvas(4.6, 4.9)
    path = folder / "figure1.gif"
    writer = PillowWriter(fps=_FRAMES_PER_SECOND)  # type: ignore[arg-type]
    try:
        with writer.saving(figure, str(path), dpi=110):
            for count in [*range(len(example.log_density)), len(example.log_density) - 1]:
                axes.clear()
                _draw_density(axes, example.log_density[count])
                _draw_planes(axes, example, count, wrong=True)
                _draw_mark(axes, example.estimates[count], "+", INK, 110, 2.0)
                axes.set_title("before the first answer" if count == 0 else f"{count} answer{'s' * (count > 1)}")
                _draw_frame(axes, example.point)
                writer.grab_frame()
    except OSError as error:
        raise InvalidFile(f"cannot write {path}: {error.strerror or error}") from error
    return SavedFigure("figure1-animation", "Figure 1, answer by answer.", (path,))

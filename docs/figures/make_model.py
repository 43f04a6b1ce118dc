"""Draw docs/figures/model.png: how likely people at different points are to prefer one item to another."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import pairseek as ps

K = 1.5
PAIR = np.array([[-0.55, -0.35], [0.55, 0.25]])
PERSON = np.array([-0.7, 0.45])
LABELS = np.array([0.3, -0.6])
NOISES = {"constant": "#1f6feb", "normalized": "#16161d", "decaying": "#b35900"}
DISTANCES = {"near pair": (0.7, "--"), "far pair": (1.6, "-")}


def draw_plane(panel):
    """Shade the plane by the probability that a person there prefers p to q."""
    axis = np.linspace(-1.25, 1.25, 301)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    slope, offset = ps.Logistic(K, "constant").planes(PAIR[:1], PAIR[1:])
    probability = ps.Logistic(K, "constant").link_function(grid @ slope[0] + offset[0]).reshape(301, 301)
    panel.contourf(axis, axis, probability, levels=np.linspace(0, 1, 11), cmap="PuOr_r", alpha=0.5)
    levels = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    lines = panel.contour(axis, axis, probability, levels=levels, colors="#444", linewidths=0.8)
    # Labels in one row below the pair, at the points of this row where the probability is the level.
    labels = LABELS + np.outer(
        np.log(levels / (1 - levels)) - LABELS @ slope[0] - offset[0], slope[0] / (slope @ slope[0])
    )
    panel.clabel(lines, fmt=lambda level: f"{level:.0%}", fontsize=9, manual=labels)
    others = np.random.default_rng(5).uniform(-1.15, 1.15, size=(40, 2))
    panel.scatter(*others.T, s=9, color="#555", linewidths=0)
    panel.plot(*PAIR.T, color="#16161d", linewidth=0.8, linestyle=":")
    panel.scatter(*PAIR.T, s=55, color="#16161d", zorder=4)
    panel.scatter(*PERSON, s=110, facecolors="white", edgecolors="#16161d", linewidths=1.8, zorder=4)
    for text, point in (("p", PAIR[0]), ("q", PAIR[1]), ("w", PERSON)):
        panel.annotate(text, point, xytext=(9, 6), textcoords="offset points", style="italic", fontsize=13)
    panel.set_title("probability of answering p, for a person at each point", fontsize=11, pad=10)
    panel.set_aspect("equal")
    panel.set_xticks([])
    panel.set_yticks([])


def draw_curves(panel):
    """Draw the probability against the distance to the plane between two items, for near and far pairs."""
    distance = np.linspace(-1, 1, 201)
    points = np.column_stack([-distance, np.zeros(len(distance))])
    for noise, colour in NOISES.items():
        # k has another unit under each kind of noise: these agree for items at a distance of 1.
        k = {"constant": K, "normalized": 2 * K, "decaying": K * np.exp(2.0)}[noise]
        response = ps.Logistic(k, noise)
        for apart, style in DISTANCES.values():
            slope, offset = response.planes(np.array([[-apart / 2, 0.0]]), np.array([[apart / 2, 0.0]]))
            panel.plot(
                distance, response.link_function(points @ slope[0] + offset[0]), style, color=colour, linewidth=1.6
            )
    for noise, colour in NOISES.items():
        panel.plot([], [], color=colour, label=noise)
    for name, (_, style) in DISTANCES.items():
        panel.plot([], [], style, color="#777", label=name)
    panel.legend(frameon=False, fontsize=9, loc="upper left")
    panel.set_title("three kinds of noise", fontsize=11, pad=10)
    panel.set_xlabel("distance of the person from the plane, towards p")
    panel.set_ylabel("probability of answering p")
    panel.set_ylim(0, 1)
    panel.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    for side in ("top", "right"):
        panel.spines[side].set_visible(False)


def main():
    """Draw both panels."""
    plt.rcParams.update({"font.family": "DejaVu Sans", "font.size": 10})
    figure, (plane, curves) = plt.subplots(1, 2, figsize=(10, 4.6), width_ratios=(1, 1.15))
    draw_plane(plane)
    draw_curves(curves)
    figure.tight_layout(w_pad=3)
    figure.savefig(Path(__file__).with_name("model.png"), dpi=110, facecolor="white")


if __name__ == "__main__":
    main()

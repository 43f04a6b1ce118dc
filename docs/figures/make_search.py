"""Draw docs/figures/search.png: one search among named colours, and where it believes the person to be."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import pairseek as ps
from pairseek.datasets import colours

STEPS = (0, 6, 18)
TARGET = "dusty teal"


def main():
    """Run the search and draw three moments of it."""
    items = colours()
    search = ps.Search(items, response=ps.Logistic(25.0), rng=4)
    user = ps.SimulatedUser(items.coordinates[items.index(TARGET)], search.response, rng=3)
    plt.rcParams.update({"font.family": "DejaVu Sans", "font.size": 10})
    figure, axes = plt.subplots(1, 3, figsize=(11, 4.3), sharex=True, sharey=True)
    for panel, steps in zip(axes, STEPS, strict=True):
        while search.answers < steps:
            query = search.ask()
            search.tell(query, winner=user.answer(items, query))
        belief, estimate = search.belief, search.estimate()
        lightness = items.coordinates[:, 0]
        order = np.argsort(lightness)
        panel.scatter(
            items.coordinates[order, 1],
            items.coordinates[order, 2],
            s=30,
            alpha=0.55,
            c=[items.data["hex"][i] for i in order],
            linewidths=0,
        )
        rng = np.random.default_rng(0)
        shown = rng.choice(len(belief.weights), size=350, p=belief.weights)
        panel.scatter(*belief.samples[shown, 1:].T, s=7, color="#16161d", alpha=0.8, linewidths=0)
        panel.scatter(*estimate.point[1:], s=150, marker="+", color="white", linewidths=4.5, zorder=5)
        panel.scatter(*estimate.point[1:], s=130, marker="+", color="#16161d", linewidths=2, zorder=6)
        panel.scatter(*user.point[1:], s=110, facecolors="none", edgecolors="white", linewidths=4, zorder=5)
        panel.scatter(*user.point[1:], s=110, facecolors="none", edgecolors="#16161d", linewidths=1.6, zorder=6)
        panel.set_title(f"{steps or 'no'} answers, 95 % radius {estimate.credible_radius():.2f}", fontsize=11, pad=10)
        panel.set_aspect("equal")
        panel.set_xticks([])
        panel.set_yticks([])
        for spine in panel.spines.values():
            spine.set_visible(False)
    figure.text(
        0.5,
        0.04,
        "949 named colours (Oklab, seen along lightness).  dots: posterior samples   +: estimate   ○: the person",
        ha="center",
        color="#444",
    )
    figure.subplots_adjust(left=0.01, right=0.99, top=0.9, bottom=0.1, wspace=0.02)
    figure.savefig(Path(__file__).with_name("search.png"), dpi=130, facecolor="white")


if __name__ == "__main__":
    main()

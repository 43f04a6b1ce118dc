"""Choose the settings of the rivals of `pairseek compare` on people of the choosing half.

    python benchmarks/rival_settings.py [--methods LABELS] [--people N] [--out FOLDER] [--jobs N]

Needs the folder of recorded people that PAIRSEEK_DATA names, and the extra `rivals`. Each rival replays 24 people of
the choosing half of six data sets with each of its settings. The chosen setting has the lowest log loss, averaged over
data sets and over all numbers of answers above 0; within 0.002 of it, the highest accuracy. Chosen settings are
recorded in `pairseek.experiments.comparison.entries`, and this script prints them next to its own choice.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path
from typing import Any

import numpy as np

from pairseek.experiments import Comparison, ComparisonResults, compare
from pairseek.experiments.comparison.entries import EXTRA_METHODS, FIRST_METHODS

ROOT = Path(__file__).resolve().parents[1]
ANSWERS = [2, 5, 10, 20]
DATA = (
    *({"name": name, "answers": ANSWERS} for name in ("music", "food", "music at .75", "food at .75")),
    "first names",
    "parties",
)
_LIKE = 0.002
"""Difference of log loss below which accuracy decides."""
SCALES = (0.3, 0.6, 1.0, 1.5, 2.5)
GRIDS: dict[str, dict[str, tuple[Any, ...]]] = {
    "Gaussian, information": {"scale": (2.0, 3.0, 4.0), "shrinkage": (0.1, 0.2, 0.4)},
    "factor analysis": {"factors": (4, 8), "scale": (1.0, 2.0, 3.0)},
    "components, BALD": {"components": (4, 8), "scale": (1.0, 2.0, 3.0)},
    "popularity": {"popularity": (0.5, 1.0)},
    "popularity and liked": {"scale": (0.5, 1.0, 2.0), "popularity": (0.5, 1.0)},
    "logistic, BALD": {"scale": (0.3, 0.6, 1.2)},
    "average of liked": {"scale": (0.5, 1.0, 2.0)},
    "choix I-LSR": {"strength": (0.003, 0.01, 0.03, 0.1, 0.3)},
    "choix EP": {"strength": (2.0, 4.0, 8.0, 16.0)},
    "item neighbours": {"neighbours": (3, 10, 40), "scale": (0.3, 0.6, 1.0, 1.5), "popularity": (0.5, 1.0)},
    "EASE": {"ridge": (10.0, 100.0, 1000.0), "scale": (0.3, 0.6, 1.0, 1.5), "popularity": (0.5, 1.0)},
    "question tree": {"error": (0.1, 0.2, 0.3, 0.4)},
    "GLIS": {"width": (0.5, 1.0, 2.0), "exploration": (0.5, 1.0), "scale": (0.3, 0.6, 1.0)},
    "ALS": {"factors": (2, 4, 8), "scale": SCALES},
    "Qdrant average": {"scale": SCALES},
    "Qdrant best score": {"scale": SCALES},
    "Qdrant context": {"scale": SCALES},
    "Qdrant feedback": {"feedback": (0.03, 0.3, 3.0), "scale": SCALES},
    "BoTorch, linear and RBF": {"likelihood": ("probit", "logit")},
    "BoTorch": {"likelihood": ("probit", "logit")},
    "BoTorch, others": {"scale": (1.0, 2.0, 3.0)},
}
"""Settings to choose from, by label."""


def entries(label: str) -> list[dict[str, Any]]:
    """Return a record of a method for each combination of its settings."""
    names = tuple(GRIDS[label])
    own = [dict(zip(names, values, strict=True)) for values in itertools.product(*GRIDS[label].values())]
    return [
        {**(FIRST_METHODS | EXTRA_METHODS)[label], **settings, "label": _label(label, settings)} for settings in own
    ]


def _label(label: str, settings: dict[str, Any]) -> str:
    return f"{label}: {', '.join(f'{name} {value}' for name, value in settings.items())}"


def score(results: ComparisonResults, label: str) -> tuple[float, float]:
    """Return log loss and accuracy, averaged over people, numbers of answers above 0, and data sets."""
    out = []
    for data, counts in zip(results.labels, results.counts, strict=True):
        later = np.array(counts) > 0
        out.append(
            [
                np.nanmean(results.scores(data, label, name)[:, later], axis=0).mean()
                for name in ("log_loss", "accuracy")
            ]
        )
    loss, accuracy = np.mean(out, axis=0)
    return float(loss), float(accuracy)


def chosen(scores: dict[str, tuple[float, float]]) -> str:
    """Return the label of the highest accuracy among those whose log loss is like the lowest."""
    least = min(loss for loss, _ in scores.values())
    return max((label for label, (loss, _) in scores.items() if loss <= least + _LIKE), key=lambda own: scores[own][1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", default="", help="only these labels, separated by semicolons")
    parser.add_argument("--people", type=int, default=24)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=ROOT / "pairseek-results" / "rival-settings")
    given = parser.parse_args()
    for label in [part.strip() for part in given.methods.split(";") if part.strip()] or GRIDS:
        plan = Comparison(entries(label), DATA, people=given.people, half="choosing")
        results = compare(plan, given.out / label.replace(" ", "-").replace(",", ""), jobs=given.jobs)
        scores = {name: score(results, name) for name in results.methods}
        best = chosen(scores)
        for name, (loss, accuracy) in sorted(scores.items(), key=lambda pair: pair[1]):
            print(f"{'->' if name == best else '  '} {loss:.4f} {accuracy:.4f}  {name}")
        recorded = {
            name: value for name, value in (FIRST_METHODS | EXTRA_METHODS)[label].items() if name in GRIDS[label]
        }
        print(f"   recorded: {recorded or 'defaults'}; faults: {len(results.faults)}\n", flush=True)


if __name__ == "__main__":
    main()

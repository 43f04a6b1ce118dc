"""Fidelity: how far the chosen pair falls short of the best candidate, in the setting of the paper.

    python benchmarks/fidelity.py                                       # about five minutes on two cores
    python benchmarks/fidelity.py --dimensions 4 --noises normalized    # half a minute

Pairs are chosen as a search chooses them, with 4000 samples: by table, then the best 512 again by samples. They are
judged with 40,000. Shown is (best - chosen)/(best - median candidate) in percent, for the table alone and as chosen,
after so many answers; then the median and the worst over all states: the claim is 1 % and 5 %, for InfoGain and EPMV.
MCMV needs no samples: its score is exact.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

import pairseek as ps
from food import RATE, items, name, response
from pairseek.responses import NOISES

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from shortfall import along_a_search

AT = (0, 5, 30, 60)
CLAIMED = ("infogain", "epmv")


def strategies(d, catalogue):
    chosen = [ps.InfoGain(), ps.EPMV(catalogue.spread)]
    # Exact greedy utilities of thousands of pairs by 40,000 samples take minutes in more dimensions.
    return [*chosen, ps.GreedyMSE(), ps.GreedyVolume()] if d == 4 else chosen


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dimensions", type=int, nargs="+", default=[4, 12])
    parser.add_argument("--noises", nargs="+", choices=NOISES, default=list(NOISES))
    parser.add_argument("--samples", type=int, default=4000, help="samples to choose by; ten times as many judge")
    parser.add_argument("--judged", type=int, default=2000, help="candidates of highest score that are judged")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    everything: dict[str, list[tuple[float, float]]] = {}
    print(f"{name()}; percent short of the best candidate, by table / as chosen")
    for d in options.dimensions:
        catalogue = items(d)
        candidates = int(RATE * catalogue.n * (catalogue.n - 1) / 2)
        for noise in options.noises:
            rows: dict[str, list[str]] = {}
            for found in along_a_search(
                catalogue,
                response(d, noise),
                strategies(d, catalogue),
                at=AT,
                candidates=candidates,
                samples=options.samples,
                judged=options.judged,
                seed=options.seed,
            ):
                everything.setdefault(found.strategy, []).append((found.by_table, found.chosen))
                cell = f"{100 * found.by_table:6.1f} /{100 * found.chosen:5.1f}"
                rows.setdefault(found.strategy, []).append(cell)
            print(f"\nd = {d}, {noise} noise" + "".join(f"{f'{t} answers':>16}" for t in AT))
            for strategy, cells in rows.items():
                print(f"{strategy:>22}" + "".join(f"{cell:>16}" for cell in cells), flush=True)
    print(f"\n{'over all states':>22}{'median':>28}{'worst':>16}")
    for strategy, found in everything.items():
        for way, percent in zip(("by table", "as chosen"), 100 * np.array(found).T, strict=True):
            kept = "kept" if np.median(percent) <= 1 and percent.max() <= 5 else "missed"
            figures = f"{np.median(percent):16.2f}{percent.max():16.2f}"
            print(f"{strategy:>22}{way:>12}{figures}   {kept if strategy in CLAIMED else ''}")


if __name__ == "__main__":
    main()

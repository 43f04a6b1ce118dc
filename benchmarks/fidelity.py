"""Fidelity: the shortfall of the chosen pair from the best candidate, in the setting of the paper.

    python benchmarks/fidelity.py                                       # about five minutes on two cores
    python benchmarks/fidelity.py --dimensions 4 --noises normalized    # half a minute

Pairs are chosen from a table, or by scoring the best 512 in the table again with 4000 samples, and judged with 40,000
samples. The output is (best - chosen)/(best - median candidate) in percent, for both ways and several numbers of
answers, then the median and the worst over all states. A search chooses EPMV's pair from the table and scores the other
strategies' again; for InfoGain and EPMV the claim is 1 % (median) and 5 % (worst). MCMV needs no samples: its score is
exact.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

import pairseek as ps
from food import RATE, items, name, response
from pairseek.model.noise import NOISES

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from helpers.shortfall import along_a_search

AT = (0, 5, 30, 60)
CLAIMED = {"infogain": "scored again", "epmv": "by table"}


def strategies(d, catalogue):
    chosen = [ps.InfoGain(), ps.EPMV(catalogue.spread)]
    # In more dimensions, exact greedy utilities of thousands of pairs with 40,000 samples take minutes.
    return [*chosen, ps.GreedyMSE(), ps.GreedyVolume()] if d == 4 else chosen


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dimensions", type=int, nargs="+", default=[4, 12])
    parser.add_argument("--noises", nargs="+", choices=NOISES, default=list(NOISES))
    parser.add_argument("--samples", type=int, default=4000, help="samples for choosing; ten times as many for judging")
    parser.add_argument("--judged", type=int, default=2000, help="number of the highest-scored candidates to judge")
    parser.add_argument("--rescore", type=int, default=512, help="number of the best in the table to score again")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    everything: dict[str, list[tuple[float, float]]] = {}
    print(f"{name()}; percent short of the best candidate, by table / scored again")
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
                rescore=options.rescore,
            ):
                everything.setdefault(found.strategy, []).append((found.by_table, found.rescored))
                cell = f"{100 * found.by_table:6.1f} /{100 * found.rescored:5.1f}"
                rows.setdefault(found.strategy, []).append(cell)
            print(f"\nd = {d}, {noise} noise" + "".join(f"{f'{t} answers':>16}" for t in AT))
            for strategy, cells in rows.items():
                print(f"{strategy:>22}" + "".join(f"{cell:>16}" for cell in cells), flush=True)
    print(f"\n{'over all states':>22}{'median':>30}{'worst':>16}")
    for strategy, found in everything.items():
        for way, percent in zip(("by table", "scored again"), 100 * np.array(found).T, strict=True):
            kept = "kept" if np.median(percent) <= 1 and percent.max() <= 5 else "missed"
            figures = f"{np.median(percent):16.2f}{percent.max():16.2f}"
            print(f"{strategy:>22}{way:>14}{figures}   {kept if CLAIMED.get(strategy) == way else ''}")


if __name__ == "__main__":
    main()

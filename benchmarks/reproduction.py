"""Results of `pairseek reproduce figure2` beside the authors' program, as Markdown for docs/reproduction.md.

    pairseek reproduce figure2 --preset paper --out results
    python benchmarks/reproduction.py results/figure2

The authors' figures are those of reference/accuracy.json in the folder that PAIRSEEK_DATA names. A cell that lies more
than two standard errors of the difference above theirs is marked.
"""

from __future__ import annotations

import json
import sys

import numpy as np

from food import folder
from pairseek.experiments import Results

MARKS = (20, 40, 60, 80)
KEYS = {
    "matched": "d4 matched normalized",
    "mismatched": "d4 mismatched (decaying logistic model, Gaussian normalized noise)",
}
THEIRS = {
    "squared_error": ("mse", "se"),
    "kendall_tau": ("kendall", "kendall_se"),
    "posterior_trace": ("posterior_trace", "posterior_trace_se"),
}


def cell(results, known, setting, label, metric, mark):
    """Ours (standard error) / theirs (standard error), and whether ours is clearly worse."""
    mean, error = results.curve(setting, label, metric)
    place = results.column(mark)
    text = f"{mean[place]:.3f} ({error[place]:.3f})"
    value, deviation = THEIRS[metric]
    theirs = known.get(label, {}).get(str(mark), {})
    if value not in theirs:
        return text
    limit = theirs[value] + 2 * np.hypot(error[place], theirs[deviation])
    worse = " worse" if mean[place] > limit else ""
    return f"{text} / {theirs[value]:.3f} ({theirs[deviation]:.3f}){worse}"


def table(results, known, setting, metric, labels):
    print("| " + " | ".join(["", *(f"{mark} answers" for mark in MARKS)]) + " |")
    print("|" + "---|" * (len(MARKS) + 1))
    for label in labels:
        cells = [cell(results, known, setting, label, metric, mark) for mark in MARKS]
        print("| " + " | ".join([label, *cells]) + " |")
    print()


def differences(results, setting, metric, pairs):
    print("| " + " | ".join(["", *(f"{mark} answers" for mark in MARKS)]) + " |")
    print("|" + "---|" * (len(MARKS) + 1))
    for pair in pairs:
        found = [results.paired(setting, pair, metric, mark) for mark in MARKS]
        cells = [f"{p.difference:+.3f} ({p.standard_error:.3f})" for p in found]
        print("| " + " | ".join([" - ".join(pair), *cells]) + " |")
    print()


def main():
    results = Results.read(sys.argv[1])
    where = folder()
    path = None if where is None else where / "reference" / "accuracy.json"
    reference = {} if path is None else json.loads(path.read_text())
    labels = results.specification.labels
    bayesian = [label for label in labels if "-" not in label]
    active = [label for label in bayesian if label != "Random"]
    print(f"{results.specification.trials} users; ours (standard error) / theirs (standard error)\n")
    for setting in KEYS:
        known = reference.get(KEYS[setting], {})
        for metric in results.specification.metrics:
            print(f"### {setting}: {metric}\n")
            table(results, known, setting, metric, bayesian if metric == "posterior_trace" else labels)
        for metric in results.specification.metrics:
            print(f"### {setting}: paired differences of {metric}\n")
            pairs = [(label, "Random") for label in active] + [("EPMV", "InfoGain"), ("MCMV", "InfoGain")]
            if metric != "posterior_trace":
                pairs += [("Random", label) for label in labels if "-" in label]
            differences(results, setting, metric, pairs)
    sessions = results.run["sessions"]
    print(f"{sum(s.get('seconds', 0) for s in sessions):.0f} s of wall time in {len(sessions)} sessions")
    for index, label in enumerate(labels):
        print(f"{label}: {results.seconds[:, index, :, -1].mean():.2f} s a trial")


if __name__ == "__main__":
    main()

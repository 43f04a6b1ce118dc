"""Speed: every figure beside the authors' way, timed in the same run.

python benchmarks/bench.py [--quick]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

import pairseek as ps
from authors import STAN_SHARE, seconds_per_pair
from food import RATE, items, name, response

WANTED = {("infogain", 4): 300, ("epmv", 4): 150, ("mcmv", 4): 60, ("infogain", 12): 250}
STRATEGIES = {"infogain": ps.InfoGain, "epmv": ps.EPMV, "mcmv": ps.MCMV}


def search_for(d, strategy, catalogue, *, candidates, n=4000, noise="normalized"):
    return ps.Search(
        catalogue,
        response=response(d, noise),
        prior=ps.UniformBox(),
        posterior=ps.Particles(n),
        strategy=strategy,
        candidates=candidates,
        rng=7,
    )


def advance(search, answers, *, timed=None):
    """Answer so many queries; times of (posterior, choosing) go to `timed`."""
    d = search.items.d
    user = ps.SimulatedUser(np.random.default_rng(3).uniform(-1, 1, d), search.response, rng=5)
    for _ in range(answers):
        began = time.perf_counter()
        search.belief  # noqa: B018 - the posterior is worked out when it is first looked at
        middle = time.perf_counter()
        query = search.ask()
        if timed is not None:
            timed.append((middle - began, time.perf_counter() - middle))
        search.tell(query, winner=user.answer(search.items, query))
    return search


def against_the_authors(rounds):
    print(f"\nOne query at 60 answers: {name()}, n = 12,624, rate 1e-3 (79,676 candidates), 4000 samples, normalized")
    print("the plain loop is timed on 300 pairs in this run and scaled up; its posterior is Stan's measured share\n")
    print(f"{'':22}{'plain loop':>12}{'ours':>10}{'posterior':>11}{'choosing':>10}{'ratio':>9}{'wanted':>9}")
    for (strategy, d), wanted in WANTED.items():
        catalogue = items(d)
        search = search_for(d, STRATEGIES[strategy](), catalogue, candidates=ps.SampledPairs(rate=RATE))
        advance(search, 55)
        timed: list[tuple[float, float]] = []
        advance(search, rounds, timed=timed)
        posterior, choosing = np.mean(timed, axis=0)
        count = int(RATE * catalogue.n * (catalogue.n - 1) / 2)
        rng = np.random.default_rng(1)
        samples = search.belief.samples
        k = search.response.constant
        loops = {
            which: count * seconds_per_pair(which, catalogue.coordinates, k, samples, rng=rng)
            for which in {strategy, "infogain"}
        }
        plain = loops[strategy] + STAN_SHARE[d] * loops["infogain"]
        ours = posterior + choosing
        print(
            f"{strategy + f', d = {d}':22}{plain:10.2f} s{1e3 * ours:7.1f} ms{1e3 * posterior:8.1f} ms"
            f"{1e3 * choosing:7.1f} ms{plain / ours:8.0f}x{wanted:8d}x"
        )


def posterior_updates():
    print("\nPosterior update, 4000 samples, answers 1 to 80, InfoGain's questions (wanted: median 20 and 40 ms)\n")
    print(f"{'':8}{'median':>10}{'mean':>10}{'largest':>10}{'moved in':>10}")
    for d in (4, 12):
        search = search_for(d, ps.InfoGain(), items(d), candidates=ps.SampledPairs(count=5000))
        user = ps.SimulatedUser(np.random.default_rng(3).uniform(-1, 1, d), search.response, rng=5)
        times, moved = [], 0
        for _ in range(80):
            query = search.ask()
            search.tell(query, winner=user.answer(search.items, query))
            began = time.perf_counter()
            moved += search.belief.info.moves > 0
            times.append(1e3 * (time.perf_counter() - began))
        print(f"d = {d:<4}{np.median(times):7.1f} ms{np.mean(times):7.1f} ms{np.max(times):7.1f} ms{moved:>7} of 80")


def large_catalogues():
    print("\nask() with 100,000 sampled candidates, after 10 answers (wanted: 150 ms at 100,000, 1 s at a million)\n")
    rng = np.random.default_rng(0)
    for n in (12_624, 100_000, 1_000_000):
        catalogue = ps.Items(rng.standard_normal((n, 4))).scaled()
        search = search_for(4, ps.InfoGain(), catalogue, candidates=ps.SampledPairs(count=100_000))
        advance(search, 10)
        timed: list[tuple[float, float]] = []
        advance(search, 7, timed=timed)
        print(f"n = {n:>9,}{1e3 * np.median([t[1] for t in timed]):8.1f} ms")


def growth():
    print("\nWhat time grows with (d = 4, milliseconds; each line doubles one number)\n")
    catalogue = items(4)

    def row(what, sizes, measure):
        times = [measure(size) for size in sizes]
        cells = "".join(f"{size:>10,}:{1e3 * t:6.1f}" for size, t in zip(sizes, times, strict=True))
        print(f"{what:34}{cells}   last/first {times[-1] / times[0]:.1f} for a factor of {sizes[-1] / sizes[0]:.0f}")

    def full_move(answers=80, n=4000):
        """An update that moves every particle: threshold 1 makes every one do so."""
        search = search_for(4, ps.Random(), catalogue, candidates=ps.SampledPairs(count=10))
        advance(search, answers - 1)
        moving = ps.Particles(n, threshold=1.0)
        belief = moving.start(search.prior, 4, np.random.default_rng(0))
        evidence = search._evidence(len(search.history))
        arguments = (evidence, search.prior, search.response)
        best = np.inf
        for seed in range(7):
            began = time.perf_counter()
            moving.update(belief, *arguments, np.random.default_rng(seed))
            best = min(best, time.perf_counter() - began)
        return best

    def choosing(count=80_000, n=4000, rescore=512):
        source = ps.SampledPairs(count=count, rescore=rescore)
        search = advance(search_for(4, ps.InfoGain(), catalogue, candidates=source, n=n), 5)
        timed: list[tuple[float, float]] = []
        advance(search, 9, timed=timed)
        return float(np.min([t[1] for t in timed]))

    row("moving, by answers", (20, 40, 80, 160), lambda m: full_move(answers=m))
    row("moving, by samples", (2000, 4000, 8000, 16000), lambda n: full_move(n=n))
    row("choosing, by candidates", (80_000, 160_000, 320_000, 640_000), lambda c: choosing(count=c))
    row("choosing 512 again, by samples", (4000, 8000, 16000, 32000), lambda n: choosing(count=1000, n=n))


def run_python(code, **environment):
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return time.perf_counter() - began, done.stdout.strip(), done.stderr.strip()


def starting():
    print("\nStarting, memory\n")
    bare = min(run_python("import sys")[0] for _ in range(3))
    loaded = min(run_python("import pairseek")[0] for _ in range(3))
    print(f"import pairseek                    {loaded - bare:6.2f} s (wanted: under 1)")
    first = (
        "import numpy as np, pairseek as ps, time; rng = np.random.default_rng(0);"
        "s = ps.Search(ps.Items(rng.standard_normal((12624, 4))), rng=1{}); t = time.perf_counter(); s.ask();"
        "print(time.perf_counter() - t)"
    )
    # What numba needs for a loop over two arrays: how fast this machine compiles today.
    loop = (
        "import numba, numpy as np, time; f = numba.njit(lambda x, y: sum([a * b for a, b in zip(x, y)]));"
        "t = time.perf_counter(); f(np.ones(3), np.ones(3)); print(time.perf_counter() - t)"
    )
    one = min(float(run_python(loop)[1]) for _ in range(3))
    for label, source in (("default", ""), ("SampledPairs", ", candidates=ps.SampledPairs(rate=1e-3)")):
        with tempfile.TemporaryDirectory() as cache:
            _, cold, message = run_python(first.format(source), NUMBA_CACHE_DIR=cache)
            _, warm, _ = run_python(first.format(source), NUMBA_CACHE_DIR=cache)
        print(
            f"first ask, {label:13} empty cache {float(cold):6.2f} s (wanted: under 10), as long as "
            f"{float(cold) / one:.0f} one-line functions; kernels on disk {float(warm):.2f} s"
        )
    print(f"it says: {message!r}")
    # The high-water mark of the process's own memory; getrusage would count what the parent held before it started.
    memory = (
        "import numpy as np, pairseek as ps; rng = np.random.default_rng(0);"
        "s = ps.Search(ps.Items(rng.standard_normal((12624, 4))), rng=1)\n"
        "for _ in range(10): s.tell(s.ask(), winner=s.ask().left)\n"
        "print(next(int(x.split()[1]) / 1024 for x in open('/proc/self/status') if x.startswith('VmHWM')))"
    )
    _, peak, _ = run_python(memory)
    print(
        f"peak memory at n = 12,624          {float(peak):6.0f} MB, Python, numba and LLVM included (wanted: under 300)"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    rounds = 8 if parser.parse_args().quick else 21
    against_the_authors(rounds)
    posterior_updates()
    large_catalogues()
    growth()
    starting()


if __name__ == "__main__":
    main()

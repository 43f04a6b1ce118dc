"""Speed of pairseek and of the authors' algorithm, timed in the same run.

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
# Sources for a whole InfoGain query in d = 4, with the target speedup over the plain loop.
SOURCES = {"AllPairs(gap=0.03)": (ps.AllPairs(gap=0.03), 2200), "default": (None, 1500)}


def search_for(d, strategy, catalogue, *, candidates, posterior=None, noise="normalized"):
    return ps.Search(
        catalogue,
        response=response(d, noise),
        prior=ps.UniformBox(),
        posterior=posterior,
        strategy=strategy,
        candidates=candidates,
        rng=7,
    )


def advance(search, answers, *, timed=None):
    """Answer some queries; append the times of (posterior, selection) to `timed`."""
    d = search.items.d
    user = ps.SimulatedUser(np.random.default_rng(3).uniform(-1, 1, d), search.response, rng=5)
    for _ in range(answers):
        began = time.perf_counter()
        search.belief  # noqa: B018 - the posterior is inferred on first access
        middle = time.perf_counter()
        query = search.ask()
        if timed is not None:
            timed.append((middle - began, time.perf_counter() - middle))
        search.tell(query, winner=user.answer(search.items, query))
    return search


def plain_loop(strategy, d, catalogue, search):
    """Return the seconds per query of the authors' algorithm: its loop over 300 pairs, scaled up, plus Stan's share."""
    count = int(RATE * catalogue.n * (catalogue.n - 1) / 2)
    rng = np.random.default_rng(1)
    samples = np.resize(search.belief.samples, (4000, d))
    loops = {
        which: count * seconds_per_pair(which, catalogue.coordinates, search.response.constant, samples, rng=rng)
        for which in {strategy, "infogain"}
    }
    return loops[strategy] + STAN_SHARE[d] * loops["infogain"]


def against_the_authors(rounds):
    print(f"\nOne query at 60 answers: {name()}, n = 12,624, rate 1e-3 (79,676 candidates), 4000 samples, normalized")
    print("the plain loop is timed on 300 pairs and scaled up; its posterior is Stan's measured share\n")
    print(f"{'':34}{'plain loop':>12}{'ours':>10}{'posterior':>11}{'choosing':>10}{'ratio':>9}{'target':>9}")
    rows = [(strategy, d, "rate 1e-3", ps.SampledPairs(rate=RATE), wanted) for (strategy, d), wanted in WANTED.items()]
    rows += [("infogain", 4, label, source, wanted) for label, (source, wanted) in SOURCES.items()]
    for strategy, d, label, source, wanted in rows:
        catalogue = items(d)
        search = search_for(d, STRATEGIES[strategy](), catalogue, candidates=source)
        advance(search, 55)
        timed: list[tuple[float, float]] = []
        advance(search, rounds, timed=timed)
        posterior, choosing = np.mean(timed, axis=0)
        plain, ours = plain_loop(strategy, d, catalogue, search), posterior + choosing
        print(
            f"{strategy + f', d = {d}, {label}':34}{plain:10.2f} s{1e3 * ours:7.1f} ms{1e3 * posterior:8.2f} ms"
            f"{1e3 * choosing:7.1f} ms{plain / ours:8.0f}x{wanted:8d}x"
        )


def posterior_updates():
    print("\nPosterior through the public API, from scratch, check included (target: 1 ms after 60 answers in d = 4,")
    print("2 ms after 80 in d = 12), InfoGain's questions; median milliseconds of 20, compared with 4000 particles\n")
    print(f"{'':24}{'5 answers':>12}{'20':>10}{'60':>10}{'80':>10}{'particles at 80':>18}{'ratio':>8}   how")
    for d in (4, 12):
        for noise in ("normalized", "constant", "decaying"):
            search = search_for(d, ps.InfoGain(), items(d), candidates=ps.SampledPairs(count=5000), noise=noise)
            user = ps.SimulatedUser(np.random.default_rng(3).uniform(-1, 1, d), search.response, rng=5)
            cells, methods = [], []
            for answers in range(1, 81):
                query = search.ask()
                search.tell(query, winner=user.answer(search.items, query))
                methods.append(search.belief.info.method)
                if answers in (5, 20, 60, 80):
                    cells.append(belief_milliseconds(search))
            particles = ps.Particles(4000)
            slow = min(belief_milliseconds(search, posterior=particles, repeats=1) for _ in range(3))
            how = ", ".join(f"{methods.count(method)} {method}" for method in dict.fromkeys(methods))
            print(
                f"d = {d:<3} {noise:15}{cells[0]:10.2f}{cells[1]:10.2f}{cells[2]:10.2f}{cells[3]:10.2f}"
                f"{slow:15.1f} ms{slow / cells[3]:7.0f}x   {how}"
            )


def belief_milliseconds(search, *, posterior=None, repeats=20):
    """Return the median time of `belief` after the events of this search, each time from scratch."""
    times = []
    parts = {name: getattr(search, name) for name in ("response", "prior", "strategy", "candidates")}
    start = search if posterior is None else ps.Search(search.items, posterior=posterior, rng=7, **parts)
    for _ in range(repeats):
        again = start.continued(search.history)
        began = time.perf_counter()
        again.belief  # noqa: B018 - inferred on first access
        times.append(1e3 * (time.perf_counter() - began))
    return float(np.median(times))


def large_catalogues():
    print("\nask() with 100,000 sampled candidates, after 10 answers (target: 150 ms at 100,000, 1 s at a million)\n")
    rng = np.random.default_rng(0)
    for n in (12_624, 100_000, 1_000_000):
        catalogue = ps.Items(rng.standard_normal((n, 4))).scaled()
        search = search_for(4, ps.InfoGain(), catalogue, candidates=ps.SampledPairs(count=100_000))
        advance(search, 10)
        timed: list[tuple[float, float]] = []
        advance(search, 7, timed=timed)
        print(f"n = {n:>9,}{1e3 * np.median([t[1] for t in timed]):8.1f} ms")


def growth():
    print("\nScaling of times (d = 4, milliseconds; each line doubles one number)\n")
    catalogue = items(4)

    def row(what, sizes, measure):
        times = [measure(size) for size in sizes]
        cells = "".join(f"{size:>10,}:{1e3 * t:6.1f}" for size, t in zip(sizes, times, strict=True))
        print(f"{what:34}{cells}   last/first {times[-1] / times[0]:.1f} for a factor of {sizes[-1] / sizes[0]:.0f}")

    def posterior(answers=80, source=None):
        search = search_for(4, ps.Random(), catalogue, candidates=ps.SampledPairs(count=10), posterior=source)
        advance(search, answers)
        return belief_milliseconds(search, repeats=7) / 1e3

    def choosing(count=80_000, n=2048, rescore=512):
        source = ps.SampledPairs(count=count, rescore=rescore)
        search = advance(search_for(4, ps.InfoGain(), catalogue, candidates=source, posterior=ps.EP(n)), 5)
        timed: list[tuple[float, float]] = []
        advance(search, 9, timed=timed)
        return float(np.min([t[1] for t in timed]))

    row("EP, by answers", (20, 40, 80, 160, 320), lambda m: posterior(answers=m))
    row("particles, by answers", (20, 40, 80), lambda m: posterior(answers=m, source=ps.Particles()))
    row("particles, by number", (2000, 4000, 8000), lambda n: posterior(answers=40, source=ps.Particles(n)))
    row("choosing, by candidates", (80_000, 160_000, 320_000, 640_000), lambda c: choosing(count=c))
    row("rescoring 512, by samples", (2048, 4096, 8192, 16384), lambda n: choosing(count=1000, n=n))


def default_questions(rounds):
    """Time an answer and the next question; work that slows everything slows the reference equally."""
    numbers = np.random.default_rng(0).random(100_000)
    print("\nAn answer and the next question after 20 answers, n = 12,624, processor time on one thread;")
    print("the reference, np.sort of 100,000 numbers, is timed after each question\n")
    ps.set_thread_count(1)
    searches = {"default": {}, "goal best": {"goal": "best"}, "ps.Logistic()": {"response": ps.Logistic()}}
    for label, parts in searches.items():
        for d in (4, 12):
            search, times = ps.Search(items(d), rng=7, stop=(), **parts), []
            user = ps.SimulatedUser(np.random.default_rng(3).uniform(-1, 1, d), response(d, "constant"), rng=5)
            for _ in range(20 + rounds):
                query = search.ask()
                winner = user.answer(search.items, query)
                stamps = [time.process_time()]
                search.tell(query, winner=winner)
                search.ask()
                stamps.append(time.process_time())
                np.sort(numbers)
                times.append(np.diff([*stamps, time.process_time()]))
            question, sort = np.median(times[20:], axis=0)
            print(f"{label:14} d = {d:<3}{1e3 * question:8.2f} ms{question / sort:8.2f} sorts of {1e3 * sort:.2f} ms")
    ps.set_thread_count(None)


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
    print(f"import pairseek                    {loaded - bare:6.2f} s (target: under 1)")
    first = (
        "import numpy as np, pairseek as ps, time; rng = np.random.default_rng(0);"
        "s = ps.Search(ps.Items(rng.standard_normal((12624, 4))), rng=1{}); t = time.perf_counter(); s.ask();"
        "print(time.perf_counter() - t)"
    )
    # Compilation of a one-line loop by numba, as a reference for how fast this machine compiles.
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
            f"first ask, {label:13} empty cache {float(cold):6.2f} s (target: under 10), as long as "
            f"{float(cold) / one:.0f} one-line functions; kernels on disk {float(warm):.2f} s"
        )
    print(f"message: {message!r}")
    # The peak memory of the process itself; getrusage would include what the parent held before the start.
    memory = (
        "import numpy as np, pairseek as ps; rng = np.random.default_rng(0);"
        "s = ps.Search(ps.Items(rng.standard_normal((12624, 4))), rng=1)\n"
        "for _ in range(10): s.tell(s.ask(), winner=s.ask().left)\n"
        "print(next(int(x.split()[1]) / 1024 for x in open('/proc/self/status') if x.startswith('VmHWM')))"
    )
    _, peak, _ = run_python(memory)
    print(
        f"peak memory at n = 12,624          {float(peak):6.0f} MB, Python, numba and LLVM included (target: under 300)"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    rounds = 8 if parser.parse_args().quick else 21
    default_questions(rounds)
    against_the_authors(rounds)
    posterior_updates()
    large_catalogues()
    growth()
    starting()


if __name__ == "__main__":
    main()

"""Build and try the sdist and the wheel as users do: extras in clean environments, types, the first question."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = (
    "",
    "cli",
    "plots",
    "baselines",
    "frames",
    "data",
    "web",
    "postgres",
    "cluster",
    "faiss",
    "qdrant",
    "pgvector",
    "all",
)
FIRST_QUESTION = """\
import pairseek as ps
search = ps.Search(ps.datasets.colours(), rng=7)
query = search.ask()
print(query.left, "or", query.right)
"""
# A program that uses what each extra adds.
SMOKE = {
    "": FIRST_QUESTION,
    "cli": "from pairseek.cli import main; main(['doctor'])",
    "plots": "from pairseek.experiments.figure_style import require_drawing; require_drawing()",
    "baselines": (
        "import pairseek as ps; items = ps.datasets.colours()\n"
        "search = ps.Search(items, strategy=ps.GaussCloud(stages=1, answers=2), rng=1)\n"
        "query = search.ask(); search.tell(query, winner=query.left); search.estimate()"
    ),
    "frames": (
        "import pairseek as ps, pyarrow as pa\n"
        "items = ps.Items.from_frame(pa.table({'id': [1, 2], 'x': [0.0, 1.0]})); items.to_frame('pyarrow')"
    ),
    "data": "import pooch; from pairseek.datasets import food10k_facts; food10k_facts(4)",
    "web": (
        "from pairseek.web.app import create_app\nfrom pairseek.web.settings import Settings\ncreate_app(Settings())"
    ),
    "postgres": "import psycopg",
    "cluster": "import distributed; from pairseek.experiments.runs.cluster import run_on_cluster",
    "faiss": "import faiss; from pairseek import indexes",
    "qdrant": "import qdrant_client; from pairseek import indexes",
    "pgvector": "import psycopg; from pairseek.indexes import PgvectorIndex; PgvectorIndex(None, 'shelf')",
    "all": FIRST_QUESTION,
}
# Appended to the program of the README; mypy must reject the one wrong line and name the types of the others.
CHECKED_LINES = """\
reveal_type(items)
reveal_type(search.finished)
reveal_type(query)
reveal_type(query.left)
reveal_type(search.estimate().point)
reveal_type(search.recommend(5))
reveal_type(search.estimate().credible_radius())
wrong: int = search.recommend(1)[0].label
"""


def run(*command: object, **settings: object) -> subprocess.CompletedProcess[str]:
    # Without PYTHONPATH, to import the installed package instead of the sources.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    words = [str(word) for word in command]
    return subprocess.run(words, text=True, capture_output=True, check=False, env=environment, **settings)  # type: ignore[call-overload]


def checked(*command: object, **settings: object) -> str:
    done = run(*command, **settings)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))[:200]} failed:\n{done.stdout}{done.stderr}")
    return str(done.stdout)


def build() -> Path:
    target = ROOT / "dist"
    shutil.rmtree(target, ignore_errors=True)
    checked(sys.executable, "-m", "build", "--outdir", target, ROOT)
    found = sorted(target.iterdir())
    print(checked(sys.executable, "-m", "twine", "check", "--strict", *found).strip())
    for path in found:
        print(f"{path.relative_to(ROOT)}  {path.stat().st_size / 1e6:.2f} MB")
    return next(target.glob("*.whl"))


def environment(folder: Path) -> Path:
    checked(sys.executable, "-m", "venv", folder)
    return folder / ("Scripts" if os.name == "nt" else "bin") / "python"


def try_extra(extra: str, wheel: Path, folder: Path) -> None:
    python = environment(folder)
    began = time.perf_counter()
    checked(python, "-m", "pip", "install", "--quiet", f"{wheel}[{extra}]" if extra else wheel)
    installed = time.perf_counter()
    said = checked(python, "-c", SMOKE[extra], cwd=folder).strip().splitlines()
    done = time.perf_counter()
    name = f"[{extra}]" if extra else "(core)"
    print(f"{name:<12} installed in {installed - began:5.1f} s, smoke test {done - installed:5.1f} s")
    if not extra:
        print(f"from pip install to the first question: {done - began:.1f} s, compilation included ({said[-1]})")
        began = time.perf_counter()
        checked(python, "-c", FIRST_QUESTION, cwd=folder)
        print(f"first question of a second process: {time.perf_counter() - began:.1f} s")
        try_types(python, folder)


def try_types(python: Path, folder: Path) -> None:
    program = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    if program is None:
        sys.exit("README.md has no Python program")
    (folder / "program.py").write_text(program[1] + CHECKED_LINES)
    checked(python, "-m", "pip", "install", "--quiet", "mypy")
    flags = ("--strict", "--disallow-any-expr")
    found = run(python, "-m", "mypy", *flags, "program.py", cwd=folder).stdout
    errors = [line for line in found.splitlines() if ": error:" in line]
    revealed = [line for line in found.splitlines() if "Revealed type is" in line]
    wrong = len((program[1] + CHECKED_LINES).splitlines())
    if len(errors) != 1 or f":{wrong}:" not in errors[0] or len(revealed) != 7:
        sys.exit(f"mypy {' '.join(flags)} on a user's file said:\n{found}")
    print(f"mypy {' '.join(flags)} on the program of the README: no Any, and the one wrong line is rejected")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--extras", help="extras to try, separated by commas; all by default")
    given = parser.parse_args().extras
    wheel = build()
    for extra in EXTRAS if given is None else ("", *filter(None, given.split(","))):
        with tempfile.TemporaryDirectory(prefix="pairseek-dist-") as folder:
            try_extra(extra, wheel, Path(folder) / "environment")


if __name__ == "__main__":
    main()

"""Tests of the kernels as plain Python against the naive reference functions.

In another process, since the choice is made at import. A subset with few examples: plain Python is slow.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
FILES = ("test_pair_kernels.py", "test_features.py", "test_tables.py", "test_control_variates.py", "test_losses.py")
FEWEST = 12


@pytest.mark.long
def test_the_twins_agree_without_the_compiler_too():
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "twin", "-x"]
    result = subprocess.run(
        [*command, *(str(HERE / name) for name in FILES)],
        cwd=HERE.parent,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PAIRSEEK_TEST_EXAMPLES": "5", "PAIRSEEK_TEST_PLAIN": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-1000:]
    # All of them ran, and none was left out in silence.
    counts = {what: int(count) for count, what in re.findall(r"(\d+) (passed|skipped|failed)", result.stdout)}
    assert counts.get("passed", 0) >= FEWEST
    assert set(counts) == {"passed"}

"""Kernels run as plain Python, against the naive reference functions.

They run in another process, because numba is disabled at import, and on few examples, because plain Python is slow.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
FILES = (
    "numerics/test_pair_kernels.py",
    "numerics/test_tables.py",
    "pairs/test_features.py",
    "posteriors/test_control_variates.py",
    "embed/test_losses.py",
)
MIN_TESTS = 12


@pytest.mark.long
def test_the_twins_agree_without_the_compiler_too():
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "twin", "-x"]
    result = subprocess.run(
        [*command, *(str(TESTS / name) for name in FILES)],
        cwd=TESTS.parent,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PAIRSEEK_TEST_EXAMPLES": "5", "PAIRSEEK_TEST_PLAIN": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-1000:]
    # All of them ran, and none was silently skipped.
    counts = {what: int(count) for count, what in re.findall(r"(\d+) (passed|skipped|failed)", result.stdout)}
    assert counts.get("passed", 0) >= MIN_TESTS
    assert set(counts) == {"passed"}

"""The contract of sources of candidates, for every source of the registry."""

from __future__ import annotations

from itertools import combinations

import pytest

from pairseek.candidates import SOURCES
from pairseek.testing import CandidateSourceContract

SETTINGS = {"listed_pairs": {"pairs": tuple(combinations(range(12), 2))}, "sampled_pairs": {"count": 40}}


class TestEverySource(CandidateSourceContract):
    @pytest.fixture(params=sorted(SOURCES))
    def source(self, request):
        return SOURCES[request.param](**SETTINGS.get(request.param, {}))

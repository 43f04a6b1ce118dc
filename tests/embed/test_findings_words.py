"""Findings in the languages of the pages."""

import re

import numpy as np
import pytest

from pairseek.core.messages import languages, words
from pairseek.embed import Triplets
from pairseek.embed import findings as parts
from pairseek.embed.similarity_map import SimilarityMap
from pairseek.model.items import Items
from pairseek.model.priors import GaussianPrior, UniformBox
from pairseek.model.responses import Logistic


def example_findings():
    """Findings of every kind, good and bad."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(40, 2))
    odd = np.vstack([points, points[:3] + 1e-9, [[80.0, 80.0]]])
    for items in (
        Items(points),
        Items(points[:5]),
        Items._without_warnings(odd, None),
        Items._without_warnings(points * [1, 1e-9], None),
    ):
        yield parts.size_finding(items)[0]
        yield parts.scale_finding(items)[0]
        yield parts.direction_finding(items)[0]
        neighbour_distances, nearest = parts.nearest_neighbours(items)
        duplicates, outliers = parts.duplicate_mask(items, neighbour_distances), parts.outlier_mask(neighbour_distances)
        yield parts.duplicate_finding(items, duplicates, nearest)[0]
        yield parts.outlier_finding(items, outliers)[0]
    items = Items(points)
    for prior in (GaussianPrior(0.0, 1.0), UniformBox(-90, 90), UniformBox(-3.5, 3.5), UniformBox(-1, 1)):
        low, high = prior.box(2)
        yield parts.prior_finding(items, prior, ((points < low) | (points > high)).any(axis=1))[0]
    for bits in (0.01, 0.3):
        yield parts.information_finding(np.full(100, bits))[0]
    yield parts.information_finding(np.r_[np.zeros(99), 0.5])[0]
    for share in (0.5, 0.8, 0.99):
        yield parts.agreement_finding(Logistic(2.0, "constant"), share)[0]
    rows = np.array([[0, 1, 2], [1, 0, 3], [2, 3, 0], [3, 2, 1]] * 4)
    yield from SimilarityMap.learn(Triplets(rows, list("abcdef")), labels=list("ABCDEF")).findings


@pytest.mark.parametrize("language", languages())
def test_every_finding_is_translated_into_every_language(language):
    say = words(language).say
    for supplied in example_findings():
        # As worded for items that a researcher supplies, and for the items of a map.
        for finding in (supplied, parts.map_finding(supplied)):
            assert finding.key
            text = say(f"finding.{finding.key}", **finding.values)
            assert "{" not in text
            assert bool(finding.advice_key) == bool(finding.advice), finding
            if finding.advice_key:
                text += say(f"finding.{finding.advice_key}", **finding.values)
            if language == "en":
                assert text == finding.found + finding.advice
            else:
                assert not re.search(r"\b(the|items|of|and|with)\b", text.replace("items.standardized()", "")), text
        assert words(language).has("finding.name." + parts.map_finding(supplied).key.split(".")[0])


def test_catalogues_and_maps_get_different_advice():
    items = Items._without_warnings(np.random.default_rng(0).normal(size=(40, 2)) * [1000, 1], None)
    own = parts.scale_finding(items)[0]
    assert "--standardize" in own.advice
    assert "column 0 runs from" in own.found
    assert "--standardize" not in parts.map_finding(own).advice
    assert "fewer dimensions" in parts.map_finding(own).advice


def test_long_lists_of_names_end_in_an_ellipsis():
    assert parts.first_names(["a", "b"]) == "a, b"
    assert parts.first_names("abcdefg") == "a, b, c, d, e, …"


def test_a_map_of_an_earlier_version_keeps_its_sentences():
    rows = np.array([[0, 1, 2], [1, 0, 3], [2, 3, 0], [3, 2, 1]] * 4)
    learned = SimilarityMap.learn(Triplets(rows, list("abcd")))
    record = learned.record()
    assert SimilarityMap.from_record(record).findings == learned.findings
    old = {**record, "findings": [values[:4] for values in record["findings"]]}
    assert SimilarityMap.from_record(old).findings[0].found == learned.findings[0].found
    assert SimilarityMap.from_record(old).findings[0].key == ""

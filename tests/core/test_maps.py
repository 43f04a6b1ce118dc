"""Geometry of maps: planes, ellipses, frames and labels."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pairseek.core.maps import (
    Frame,
    Mark,
    box_around,
    closed_path,
    ellipse_outline,
    map_plane,
    place_labels,
    principal_plane,
    thinned,
)

ROOM = (0.0, 0.0, 400.0, 300.0)


def boxes(labels, font):
    """Where the labels stand, for letters of half the size of the font."""
    wide = [(label, 0.25 * font * len(label.text)) for label in labels if label is not None]
    return [(one.x - half, one.y - 0.7 * font, one.x + half, one.y) for one, half in wide]


def overlap(one, other):
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_the_ellipse_contains_its_share(level):
    rng = np.random.default_rng(1)
    covariance = np.array([[2.0, 0.9], [0.9, 0.7]])
    mean = np.array([1.0, -2.0])
    border = ellipse_outline(mean, covariance, level) - mean
    # The squared Mahalanobis distance of the border is a quantile of chi-squared with 2 degrees.
    quantile = {0.5: 1.386, 0.95: 5.991}[level]
    assert np.allclose(np.einsum("ni,ij,nj->n", border, np.linalg.inv(covariance), border), quantile, atol=1e-3)
    draws = rng.multivariate_normal(np.zeros(2), covariance, 20_000)
    inside = np.einsum("ni,ij,nj->n", draws, np.linalg.inv(covariance), draws) < quantile
    assert abs(inside.mean() - level) < 0.015  # four standard errors of 20,000 draws


def test_the_map_of_many_dimensions_shows_the_widest_plane():
    points = np.random.default_rng(2).normal(size=(400, 4)) * [1.0, 5.0, 0.5, 3.0]
    plane = map_plane(points)
    assert np.argmax(np.abs(plane.axes), axis=0).tolist() == [1, 3]
    assert np.allclose(plane.axes.T @ plane.axes, np.eye(2))
    assert plane.axes[[1, 3], [0, 1]].min() > 0, "the sign does not depend on the decomposition"
    flat = plane.project(points)
    assert plane.share == pytest.approx(flat.var(axis=0).sum() / points.var(axis=0).sum())


@pytest.mark.parametrize("d", [0, 1, 2])
def test_few_dimensions_are_shown_as_they_are(d):
    points = np.random.default_rng(2).normal(size=(5, d))
    plane = map_plane(points)
    assert plane.share == 1.0
    assert np.array_equal(plane.project(points), np.pad(points, [(0, 0), (0, 2 - d)]))


def test_principal_axes_exist_where_nothing_varies():
    for points in (np.ones((3, 4)), np.ones((1, 3)), np.ones((4, 1))):
        plane = principal_plane(points)
        assert np.allclose(plane.project(points), 0.0)
        assert plane.share == 1.0


def test_a_region_is_seen_in_the_plane():
    points = np.random.default_rng(2).normal(size=(50, 3)) * [3.0, 0.1, 1.0]
    plane = map_plane(points)
    point, outline = plane.region(np.array([1.0, 0.0, 2.0]), np.diag([4.0, 9.0, 1.0]), 0.95)
    assert np.allclose(outline.mean(axis=0), point)
    assert np.ptp(outline, axis=0) == pytest.approx([4 * 2.4477, 2 * 2.4477], rel=0.05)


def test_a_frame_has_equal_scales_and_turns_the_vertical_axis():
    frame = Frame.fitted([(1.0, 2.0), (3.0, 12.0)], (100.0, 50.0), (10.0, 20.0))
    assert frame.scale == 5.0
    assert frame.place(1.0, 12.0) == (10.0, 20.0)
    assert frame.place_rounded(3.0, 2.0) == (20, 70)
    assert Frame.fitted([(1e6, 1.0)], (100.0, 100.0), (72.0, 72.0)).place(1e6, 1.0) == (72.0, 72.0)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("font", [12, 34])
def test_no_label_covers_a_mark_or_another_label_or_leaves_the_room(seed, font):
    rng = np.random.default_rng(seed)
    marks = [
        Mark(x, y, 6.0, "A name like others"[: 3 + n]) for n, (x, y) in enumerate(rng.uniform(0, [400, 300], (15, 2)))
    ]
    taken = box_around(200.0, 150.0, 24.0)
    labels = place_labels(marks, font, ROOM, obstacles=[taken])
    found = boxes(labels, font)
    assert len(found) >= 3
    held = [*found, taken, *(box_around(mark.x, mark.y, mark.radius) for mark in marks)]
    assert not any(overlap(held[n], other) for n in range(len(found)) for other in held[n + 1 :])
    assert all(min(one) >= 0 and one[2] <= 400 and one[3] <= 300 for one in found)
    assert place_labels(marks, font, ROOM, obstacles=[taken]) == labels


def test_a_label_stands_below_above_or_beside_its_mark():
    at = Mark(200.0, 150.0, 5.0, "here")
    blocked = [(195.0, 157.0, 205.0, 170.0), (195.0, 130.0, 205.0, 143.0), (206.0, 145.0, 230.0, 155.0)]
    found = [place_labels([at], 12, ROOM, obstacles=blocked[:count])[0] for count in range(4)]
    assert found[0].y > 155
    assert found[1].y < 145
    assert [(one.x > 205, one.x < 195) for one in found[2:]] == [(True, False), (False, True)]
    everywhere = [*blocked, (170.0, 145.0, 194.0, 155.0)]
    assert place_labels([at], 12, ROOM, obstacles=everywhere) == [None]
    # A crowd gives way to the label only where no other room is left.
    assert place_labels([at], 12, ROOM, avoided=blocked[:1]) == [found[1]]
    assert place_labels([at], 12, ROOM, avoided=everywhere) == [found[0]]


def test_the_first_marks_get_the_labels_and_long_ones_are_cut():
    marks = [Mark(200.0 + n, 150.0, 5.0, f"{n} {'x' * 40}") for n in range(9)]
    labels = place_labels(marks, 12, ROOM)
    assert labels[0] is not None
    assert labels[0].text == f"0 {'x' * 21}…"
    assert None in labels


def test_paths_and_thinning():
    assert closed_path([]) == ""
    assert closed_path([(1, 2), (3.5, 4), (0, 0)]) == "M1 2L3.5 4L0 0Z"
    assert thinned("abc", 3) == list("abc")
    assert all(b - a in (3, 4) for a, b in itertools.pairwise(thinned(range(100), 30)))

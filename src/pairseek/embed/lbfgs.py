"""Minimise a smooth function of many numbers: L-BFGS (Nocedal and Wright, algorithm 7.5) with backtracking.

SciPy's own calls the linear algebra library for its sums, whose order depends on that library's threads; here equal
input gives equal bits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pairseek.core.types import FloatArray

MEMORY = 8
_DECREASE = 1e-4
_SHORTEST = 1e-10
_CURVATURE = 1e-10


@dataclass(frozen=True, eq=False)
class Minimum:
    """Where it ended.

    Attributes
    ----------
    point, value
        The last point and its value, the lowest seen.
    iterations
        Steps taken.
    converged
        False if the steps ran out.
    """

    point: FloatArray
    value: float
    iterations: int
    converged: bool


def dot(first: FloatArray, second: FloatArray) -> float:
    """The sum of products, in an order of its own."""
    return float((first * second).sum())


def minimise(
    function: Callable[[FloatArray], tuple[float, FloatArray]],
    start: FloatArray,
    *,
    step: float,
    tolerance: float,
    iterations: int,
    watch: Callable[[int, float], None] | None = None,
) -> Minimum:
    """Go down until a step lowers the value by less than a share ``tolerance`` of it.

    Parameters
    ----------
    function
        Gives value and gradient.
    start
        Where to begin; any shape.
    step
        Root mean square of the first step.
    tolerance, iterations
        When to stop.
    watch
        Called with the number of the step and the value.
    """
    point = start
    value, gradient = function(point)
    memory: deque[tuple[FloatArray, FloatArray, float]] = deque(maxlen=MEMORY)
    for iteration in range(1, iterations + 1):
        direction = _direction(gradient, memory, step)
        slope = dot(direction, gradient)
        if slope >= 0.0:
            return Minimum(point, value, iteration - 1, converged=True)
        length = 1.0
        while True:
            moved = point + length * direction
            lower, turned = function(moved)
            if lower <= value + _DECREASE * length * slope:
                break
            length *= 0.5
            if length < _SHORTEST:
                # Rounding hides any further descent.
                return Minimum(point, value, iteration - 1, converged=True)
        change, bend = moved - point, turned - gradient
        curvature = dot(change, bend)
        if curvature > _CURVATURE * dot(bend, bend):
            memory.append((change, bend, curvature))
        small = value - lower <= tolerance * abs(lower)
        point, value, gradient = moved, lower, turned
        if watch is not None:
            watch(iteration, value)
        if small:
            return Minimum(point, value, iteration, converged=True)
    return Minimum(point, value, iterations, converged=False)


def _direction(gradient: FloatArray, memory: deque[tuple[FloatArray, FloatArray, float]], step: float) -> FloatArray:
    if not memory:
        length = np.sqrt(dot(gradient, gradient))
        return -gradient * (step * np.sqrt(gradient.size) / length if length > 0 else 0.0)
    direction = -gradient
    shares = []
    for change, bend, curvature in reversed(memory):
        share = dot(change, direction) / curvature
        shares.append(share)
        direction = direction - share * bend
    change, bend, curvature = memory[-1]
    direction *= curvature / dot(bend, bend)
    for (change, bend, curvature), share in zip(memory, reversed(shares), strict=True):
        direction = direction + change * (share - dot(bend, direction) / curvature)
    return direction

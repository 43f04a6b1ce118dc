"""Compact encoding of a quiz's tree as bit fields in Base64.

Every position in the tree has a number: 0 for the first pair, then 2n + 1 and 2n + 2 after the answers "left" and
"right" to pair n. ``pairs`` contains the left and right items of each position before the last answer, in ``bits`` bits
each; a position where no pair is asked repeats one item. ``results`` contains the results in order of position. The
fields of a result are, most significant bit first:

=============================  ==========================================================================
``recommended`` x ``bits``     recommended items, best first
``recommended`` x 16           probability that each is chosen over a random other item, times 65,535
4 x 16                         radius, then the three entries of the covariance on the map; ``scales`` has the
                               lowest value and the step of each
d x 32                         point, as 32-bit floats
=============================  ==========================================================================
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pairseek.core.types import JSON, FloatArray
from pairseek.quiz.tree import AnswerPath, QuizTree

_QUANTIZED_BITS = 16
_MAX_QUANTIZED = 2**_QUANTIZED_BITS - 1

BitField = tuple[npt.NDArray[np.uint32], int]
"""Values of a field in each row, and the width of the field in bits."""


@dataclass(frozen=True, eq=False)
class MapFrame:
    """Affine map from item coordinates x to the drawing: (2,) ``origin`` + (2, d) ``axes`` @ x."""

    origin: FloatArray
    axes: FloatArray

    def position(self, points: FloatArray) -> FloatArray:
        """Return the (m, 2) positions in the drawing of (m, d) points."""
        return np.asarray(self.origin + np.atleast_2d(points) @ self.axes.T)


def encoded_size(items: int, d: int, answers: int, recommended: int) -> int:
    """Return an upper bound on the number of characters of the encoded pairs and results."""
    leaves: int = 2**answers
    bits = _bit_width(min(items, (2 + recommended) * leaves))
    pairs = 2 * bits * (leaves - 1)
    results = (recommended * (bits + _QUANTIZED_BITS) + 4 * _QUANTIZED_BITS + 32 * d) * leaves
    return (pairs + results) // 6 + 8


def encode_tree(tree: QuizTree, answers: int, d: int, frame: MapFrame) -> JSON:
    """Encode a tree as ``pairs``, ``results`` and their format, with items numbered by `QuizTree.shown_items`.

    Parameters
    ----------
    tree
        The tree.
    answers
        Maximum number of answers.
    d
        Number of coordinates of a point to store; with a population, the search may have more.
    frame
        The map.
    """
    shown = tree.shown_items()
    number = {row: index for index, row in enumerate(shown)}
    bits = _bit_width(len(shown))
    # Positions without a pair repeat the first item.
    pairs = np.zeros((2**answers - 1, 2), dtype=np.uint32)
    for path, (left, right) in tree.pairs.items():
        pairs[_position_number(path)] = number[left], number[right]
    results = [tree.results[path] for path in sorted(tree.results, key=_position_number)]
    best = np.array([[number[row] for row, _ in result.recommended] for result in results], dtype=np.uint32)
    shares = np.array([[p for _, p in result.recommended] for result in results])
    covariances = np.array([frame.axes @ result.covariance[:d, :d] @ frame.axes.T for result in results])
    entries = [covariances[:, 0, 0], covariances[:, 0, 1], covariances[:, 1, 1]]
    quantized = [_quantize(values) for values in (np.array([result.radius for result in results]), *entries)]
    points = (
        np.array([result.point[:d] for result in results], dtype=np.float32).reshape(len(results), d).view(np.uint32)
    )
    fields: list[BitField] = [(best[:, i], bits) for i in range(best.shape[1])]
    fields += [
        (np.round(shares[:, i] * _MAX_QUANTIZED).astype(np.uint32), _QUANTIZED_BITS) for i in range(best.shape[1])
    ]
    fields += [(values, _QUANTIZED_BITS) for values, _, _ in quantized]
    fields += [(points[:, i], 32) for i in range(d)]
    return {
        "bits": bits,
        "dimensions": d,
        "recommended": best.shape[1],
        "scales": [[low, step] for _, low, step in quantized],
        "pairs": _pack_base64([(pairs[:, 0], bits), (pairs[:, 1], bits)]),
        "results": _pack_base64(fields),
    }


def _position_number(path: AnswerPath) -> int:
    """Return the number of the position at the end of a path."""
    number = 0
    for side in path:
        number = 2 * number + (2 if side == "R" else 1)
    return number


def _bit_width(count: int) -> int:
    return max(1, (count - 1).bit_length())


def _quantize(values: FloatArray) -> tuple[npt.NDArray[np.uint32], float, float]:
    """Quantize values to 16 bits; return them with the lowest value and the step."""
    low, step = float(values.min()), float(np.ptp(values)) / _MAX_QUANTIZED
    numbers = np.round((values - low) / step) if step > 0.0 else np.zeros(len(values))
    return numbers.astype(np.uint32), low, step


def _pack_base64(fields: Sequence[BitField]) -> str:
    """Encode rows of bit fields in Base64."""
    columns = [
        (values[:, None] >> np.arange(width - 1, -1, -1, dtype=np.uint32)) & np.uint32(1) for values, width in fields
    ]
    bits = np.concatenate(columns, axis=1).astype(np.uint8)
    return base64.b64encode(np.packbits(bits.reshape(-1)).tobytes()).decode()

"""Compact record of a quiz: the tree as bit fields in Base64, and the items that it shows as columns.

Every position of the tree has a number: 0 for the first pair, and 2n + 1 and 2n + 2 after the answers "left" and
"right" to the pair n. ``pairs`` has the left and the right item of each position before the last answer, in ``bits``
bits each; two equal items mean that no pair is asked there. ``results`` has the results in the order of their
positions. The fields of a result are, most significant bit first:

=============================  ======================================================================
``recommended`` x ``bits``     recommended items, best first
``recommended`` x 16           probability that each is chosen over another item, in units of 1/65,535
4 x 16                         radius, and variance, covariance and variance on the map, in the units of
                               ``scales``: lowest value and step of each
d x 32                         point, as 32-bit floats
=============================  ======================================================================
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pairseek.core.types import JSON, FloatArray
from pairseek.quiz.tree import AnswerPath, QuizTree

_WORD = 16
_TOP = 2**_WORD - 1

Column = tuple[npt.NDArray[np.uint32], int]
"""Values of a field, and its width in bits."""


@dataclass(frozen=True, eq=False)
class MapFrame:
    """Affine map from the coordinates of items to the drawing of the map: ``origin`` (2,) + ``axes`` (2, d) x."""

    origin: FloatArray
    axes: FloatArray

    def place(self, points: FloatArray) -> FloatArray:
        """Return the (m, 2) places of (m, d) points."""
        return np.asarray(self.origin + np.atleast_2d(points) @ self.axes.T)


def encoded_size(items: int, d: int, answers: int, recommended: int) -> int:
    """Return the largest number of characters of the encoded pairs and results of this many items."""
    ends: int = 2**answers
    bits = _bits(min(items, (2 + recommended) * ends))
    pairs = 2 * bits * (ends - 1)
    results = (recommended * (bits + _WORD) + 4 * _WORD + 32 * d) * ends
    return (pairs + results) // 6 + 8


def encode_tree(tree: QuizTree, answers: int, d: int, frame: MapFrame) -> JSON:
    """Return the fields ``pairs``, ``results`` and those that describe them; items are numbered as in `QuizTree.used`.

    Parameters
    ----------
    tree
        The tree.
    answers
        Largest number of answers.
    d
        Number of coordinates of a point; a population may have added more to the search.
    frame
        The map.
    """
    used = tree.used()
    number = {row: index for index, row in enumerate(used)}
    bits = _bits(len(used))
    # A position without a pair has the first item twice.
    asked = np.zeros((2**answers - 1, 2), dtype=np.uint32)
    for path, (left, right) in tree.pairs.items():
        asked[_position(path)] = number[left], number[right]
    results = [tree.results[path] for path in sorted(tree.results, key=_position)]
    best = np.array([[number[row] for row, _ in one.recommended] for one in results], dtype=np.uint32)
    chance = np.array([[p for _, p in one.recommended] for one in results])
    covariances = np.array([frame.axes @ one.covariance[:d, :d] @ frame.axes.T for one in results])
    spread = [covariances[:, 0, 0], covariances[:, 0, 1], covariances[:, 1, 1]]
    scaled = [_quantized(values) for values in (np.array([one.radius for one in results]), *spread)]
    points = np.array([one.point[:d] for one in results], dtype=np.float32).reshape(len(results), d).view(np.uint32)
    fields: list[Column] = [(best[:, i], bits) for i in range(best.shape[1])]
    fields += [(np.round(chance[:, i] * _TOP).astype(np.uint32), _WORD) for i in range(best.shape[1])]
    fields += [(values, _WORD) for values, _, _ in scaled]
    fields += [(points[:, i], 32) for i in range(d)]
    return {
        "bits": bits,
        "dimensions": d,
        "recommended": best.shape[1],
        "scales": [[low, step] for _, low, step in scaled],
        "pairs": _packed([(asked[:, 0], bits), (asked[:, 1], bits)]),
        "results": _packed(fields),
    }


def _position(path: AnswerPath) -> int:
    """Return the number of a position of the tree."""
    number = 0
    for side in path:
        number = 2 * number + (2 if side == "R" else 1)
    return number


def _bits(count: int) -> int:
    return max(1, (count - 1).bit_length())


def _quantized(values: FloatArray) -> tuple[npt.NDArray[np.uint32], float, float]:
    """Return values as numbers of 16 bits, with the lowest value and the step."""
    low, step = float(values.min()), float(np.ptp(values)) / _TOP
    numbers = np.round((values - low) / step) if step > 0.0 else np.zeros(len(values))
    return numbers.astype(np.uint32), low, step


def _packed(fields: Sequence[Column]) -> str:
    """Return rows of bit fields in Base64."""
    columns = [
        (values[:, None] >> np.arange(width - 1, -1, -1, dtype=np.uint32)) & np.uint32(1) for values, width in fields
    ]
    bits = np.concatenate(columns, axis=1).astype(np.uint8)
    return base64.b64encode(np.packbits(bits.reshape(-1)).tobytes()).decode()

"""Beliefs as bytes, to the bit; and back, unless anything about them is in doubt."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields
from math import prod

import numpy as np

from pairseek._types import Belief, BeliefInfo

_KIND = np.dtype("<f8")
_MARK = hashlib.sha256().digest_size
_ARRAYS = tuple(one.name for one in fields(Belief) if one.name != "info")
_FACTS = tuple(one.name for one in fields(BeliefInfo) if one.compare)


def pack_belief(belief: Belief) -> bytes | None:
    """A belief for the store: a checksum, a line that says what follows, and the numbers. None where it is more."""
    arrays = [getattr(belief, name) for name in _ARRAYS]
    if not all(isinstance(one, np.ndarray) and one.dtype == _KIND and one.flags.c_contiguous for one in arrays):
        return None
    shapes = [[name, *array.shape] for name, array in zip(_ARRAYS, arrays, strict=True)]
    head = {"arrays": shapes, "info": {name: getattr(belief.info, name) for name in _FACTS}}
    body = b"\n".join([json.dumps(head).encode(), b"".join(array.tobytes() for array in arrays)])
    return hashlib.sha256(body).digest() + body


def unpack_belief(content: bytes) -> Belief | None:
    """What `pack_belief` packed; None where it is cut, damaged, or of another program."""
    mark, body = content[:_MARK], content[_MARK:]
    if hashlib.sha256(body).digest() != mark:
        return None
    line, _, numbers = body.partition(b"\n")
    head = json.loads(line)
    if tuple(name for name, *_ in head["arrays"]) != _ARRAYS or tuple(head["info"]) != _FACTS:
        return None
    arrays, place = {}, 0
    for name, *shape in head["arrays"]:
        # Copied, so that it lies in memory as it did.
        array = np.frombuffer(numbers, _KIND, prod(shape), place).reshape(shape).copy()
        array.flags.writeable = False
        arrays[name] = array
        place += array.nbytes
    return Belief(**arrays, info=BeliefInfo(**head["info"]))

"""Beliefs as bytes, to the bit; and back, unless anything about them is in doubt."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields
from math import prod
from typing import Any

import numpy as np

from pairseek._types import Belief, BeliefInfo, Reliability

_KINDS = ("<f8", "<i8")
_MARK = hashlib.sha256().digest_size
_FACTS = tuple(one.name for one in fields(BeliefInfo) if one.compare)
_OF_BELIEF = tuple(one.name for one in fields(Belief) if one.name not in ("info", "reliability"))
_OF_RELIABILITY = tuple(one.name for one in fields(Reliability))


def pack_belief(belief: Belief) -> bytes | None:
    """A belief for the store: a checksum, a line that says what follows, and the numbers. None where it is more."""
    values: dict[str, Any] = {name: getattr(belief, name) for name in _OF_BELIEF}
    if belief.reliability is not None:
        values.update({name: getattr(belief.reliability, name) for name in _OF_RELIABILITY})
    arrays = {name: np.asarray(value) for name, value in values.items()}
    if not all(one.dtype.str in _KINDS and one.flags.c_contiguous for one in arrays.values()):
        return None
    shapes = [[name, array.dtype.str, *array.shape] for name, array in arrays.items()]
    head = {"arrays": shapes, "info": {name: getattr(belief.info, name) for name in _FACTS}}
    body = b"\n".join([json.dumps(head).encode(), b"".join(array.tobytes() for array in arrays.values())])
    return hashlib.sha256(body).digest() + body


def unpack_belief(content: bytes) -> Belief | None:
    """What `pack_belief` packed; None where it is cut, damaged, or of another program."""
    mark, body = content[:_MARK], content[_MARK:]
    if hashlib.sha256(body).digest() != mark:
        return None
    line, _, numbers = body.partition(b"\n")
    head = json.loads(line)
    names = tuple(name for name, *_ in head["arrays"])
    if names not in (_OF_BELIEF, _OF_BELIEF + _OF_RELIABILITY) or tuple(head["info"]) != _FACTS:
        return None
    values: dict[str, Any] = {}
    place = 0
    for name, kind, *shape in head["arrays"]:
        # Copied, so that it lies in memory as it did.
        array = np.frombuffer(numbers, kind, prod(shape), place).reshape(shape).copy()
        array.flags.writeable = False
        values[name] = array if shape else array.item()
        place += array.nbytes
    own = {name: values[name] for name in _OF_BELIEF}
    reliability = Reliability(**{name: values[name] for name in _OF_RELIABILITY}) if len(names) > len(own) else None
    return Belief(**own, info=BeliefInfo(**head["info"]), reliability=reliability)

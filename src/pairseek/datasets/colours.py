"""Named colours in Oklab, and conversions between Oklab and sRGB.

Oklab (Björn Ottosson, "A perceptual color space for image processing", 2020,
https://bottosson.github.io/posts/oklab/) is perceptually uniform: equal distances look like equal differences, so Oklab
is a suitable embedding of colours. Its coordinates are the lightness, from 0 to 1, and two opponent axes, from green to
red and from blue to yellow.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

import numpy as np
import numpy.typing as npt

from pairseek.core.types import FloatArray
from pairseek.errors import InvalidParameter
from pairseek.model.items import Items

# Published matrices; their numerical inverses make conversions reversible to the last digit.
_CONES_FROM_LINEAR = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_LAB_FROM_CONE_ROOTS = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)
_LINEAR_FROM_CONES = np.linalg.inv(_CONES_FROM_LINEAR)
_CONE_ROOTS_FROM_LAB = np.linalg.inv(_LAB_FROM_CONE_ROOTS)


@cache
def colours() -> Items:
    """Return the 949 named colours of the XKCD survey in Oklab (d = 3).

    The ids are the names, and so are the labels, except for a few crude names. ``data["hex"]`` contains the colours as
    ``#rrggbb``. The coordinates are not scaled; `Items.scaled` centres and scales them as in the paper. The data are
    in the public domain (CC0): see ``xkcd_colours.SOURCE.txt``.

    Examples
    --------
    >>> items = colours()
    >>> items.n, items.d, items.data["hex"][items.index("cloudy blue")]
    (949, 3, '#acc2d9')
    """
    with resources.as_file(resources.files(__package__) / "xkcd_colours.csv") as path:
        return Items.from_csv(path, keep=["hex"])


def _triples(name: str, values: npt.ArrayLike) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 0 or array.shape[-1] != 3:
        raise InvalidParameter(f"{name} has shape {array.shape}: give three numbers per colour, shape (..., 3)")
    if not np.all(np.isfinite(array)):
        raise InvalidParameter(f"{name} contains numbers that are not finite: give three finite numbers per colour")
    return array


def oklab_from_srgb(rgb: npt.ArrayLike) -> FloatArray:
    """Convert (..., 3) sRGB colours from 0 to 1 to (..., 3) Oklab coordinates.

    Examples
    --------
    >>> oklab_from_srgb([1.0, 0.0, 0.0]).round(3).tolist()
    [0.628, 0.225, 0.126]
    """
    colour = _triples("rgb", rgb)
    if colour.size and (colour.min() < 0 or colour.max() > 1):
        raise InvalidParameter(
            f"rgb runs from {colour.min():g} to {colour.max():g}: give numbers from 0 to 1 (bytes divided by 255)"
        )
    linear = np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)
    return np.asarray(np.cbrt(linear @ _CONES_FROM_LINEAR.T) @ _LAB_FROM_CONE_ROOTS.T)


def srgb_from_oklab(lab: npt.ArrayLike) -> FloatArray:
    """Convert (..., 3) Oklab coordinates to (..., 3) sRGB colours from 0 to 1.

    Colours outside the sRGB gamut are clipped in each channel, which may change their hue.
    """
    cones = (_triples("lab", lab) @ _CONE_ROOTS_FROM_LAB.T) ** 3
    linear = np.clip(cones @ _LINEAR_FROM_CONES.T, 0.0, 1.0)
    encoded = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1.0 / 2.4) - 0.055)
    return np.asarray(np.clip(encoded, 0.0, 1.0))


def hex_from_oklab(lab: npt.ArrayLike) -> str:
    """Convert a (3,) point in Oklab to ``#rrggbb``, clipped to the sRGB gamut.

    Examples
    --------
    >>> hex_from_oklab([1.0, 0.0, 0.0])
    '#ffffff'
    """
    point = _triples("lab", lab)
    if point.ndim != 1:
        raise InvalidParameter(f"lab has shape {point.shape}: give one colour, shape (3,)")
    return "#" + "".join(f"{round(255 * channel):02x}" for channel in srgb_from_oklab(point).tolist())

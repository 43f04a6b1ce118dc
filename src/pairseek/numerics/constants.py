"""Mathematical constants that several rooms share."""

from __future__ import annotations

import math

HALF_LOG_TWO_PI = 0.9189385332046727
"""-log φ(0), for the standard normal density φ."""
GOLDEN_FRACTION = 0.6180339887498949
"""Golden ratio minus 1, whose multiples modulo 1 are evenly spread."""
LOGISTIC_VARIANCE = math.pi**2 / 3.0
"""Variance of the standard logistic distribution."""

"""Likelihoods of all answers, in the form that compiled kernels take."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pairseek.core.types import Evidence, FloatArray
from pairseek.model.responses import Response
from pairseek.numerics.jit import LOGISTIC


@dataclass(frozen=True, eq=False)
class Factors:
    """Answers as factors of the posterior, each a function of one logit.

    Attributes
    ----------
    slopes, offsets
        (m, d) and (m,): the logit of factor j is ``slopes[j] @ w + offsets[j]``. The offset of a decided answer
        includes the tie width.
    decided
        (m,), 1.0 for a decided answer, 0.0 for a tie. Without lapses, a logistic tie factorizes into two answers,
        f(z + t) - f(z - t) = f(t + z) f(t - z) (1 - e^(-2t)), so it is stored as two decided answers.
    link
        Code of the link function f.
    model
        (floor, scale, width) as in `pairseek.numerics.jit.log_answer`.
    constant
        The part of the log-likelihood that does not depend on the user point.
    """

    slopes: FloatArray
    offsets: FloatArray
    decided: FloatArray
    link: int
    model: tuple[float, float, float]
    constant: float = 0.0

    @classmethod
    def of(cls, evidence: Evidence, response: Response, *, factor: float = 1.0, lapse: float | None = None) -> Factors:
        """Return the factors of answers with logits multiplied by `factor`; `lapse` overrides the response's rate."""
        lapse = response.lapse_rate if lapse is None else lapse
        width = response.tie_width
        slopes, offsets, decided = factor * evidence.slopes, factor * evidence.offsets, evidence.decided
        offsets = offsets - width * decided
        floor = lapse / (3.0 if width > 0.0 else 2.0)
        constant = 0.0
        if lapse == 0.0 and response.link == LOGISTIC and not decided.all():
            is_tie = decided == 0.0
            constant = float(np.sum(is_tie)) * np.log(-np.expm1(-2.0 * width)) if width > 0.0 else 0.0
            offsets = np.where(is_tie, offsets + width, offsets)
            slopes = np.concatenate([slopes, -slopes[is_tie]])
            offsets = np.concatenate([offsets, 2.0 * width - offsets[is_tie]])
            decided = np.ones(len(offsets))
        return cls(
            np.ascontiguousarray(slopes),
            np.ascontiguousarray(offsets),
            np.ascontiguousarray(decided),
            response.link,
            (float(floor), float(1.0 - lapse), float(width)),
            constant,
        )

    @property
    def is_log_concave(self) -> bool:
        """Whether every factor is log-concave, which holds without lapses."""
        return self.model[0] == 0.0

    @property
    def kernel_arrays(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Slopes, offsets and decided, in the order the kernels take them."""
        return self.slopes, self.offsets, self.decided

"""Dimension reduction of vectors, such as features or embeddings of texts and images."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from pairseek.core.text import listed
from pairseek.core.types import FloatArray, ItemId
from pairseek.errors import InvalidItems, InvalidParameter
from pairseek.model.items import Items
from pairseek.numerics.covariances import principal_axes


@dataclass(kw_only=True, eq=False)
class PCA:
    """Principal component analysis.

    Parameters
    ----------
    n_components
        Number of dimensions, or the fraction of the variance to keep, between 0 and 1.
    standardize
        Whether to divide each column by its standard deviation, for features in different units.
    constant
        How to treat constant columns: ``"refuse"`` or ``"drop"``.

    Attributes
    ----------
    embedding_
        (n, d) coordinates.
    explained_variance_ratio_
        (d,) fraction of the variance along each component.
    components_, mean_, scale_
        (d, p), (p,) and (p,): coordinates are ((x - mean_)/scale_) @ components_.T.

    Examples
    --------
    >>> import numpy as np
    >>> from pairseek.embed import PCA
    >>> scales = np.r_[5.0, 4.0, np.full(198, 0.1)]
    >>> vectors = np.random.default_rng(0).standard_normal((50, 200)) * scales
    >>> PCA(n_components=2).fit(vectors).explained_variance_ratio_.sum().round(2)
    np.float64(0.96)
    """

    n_components: int | float = 2
    standardize: bool = False
    constant: Literal["refuse", "drop"] = "refuse"
    name: ClassVar[str] = "pca"

    embedding_: FloatArray = dataclasses.field(init=False, repr=False)
    explained_variance_ratio_: FloatArray = dataclasses.field(init=False, repr=False)
    components_: FloatArray = dataclasses.field(init=False, repr=False)
    mean_: FloatArray = dataclasses.field(init=False, repr=False)
    scale_: FloatArray = dataclasses.field(init=False, repr=False)
    ids_: tuple[ItemId, ...] | None = dataclasses.field(init=False, repr=False)
    labels_: tuple[str, ...] | None = dataclasses.field(init=False, repr=False)

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002, FBT001, FBT002 - as in scikit-learn
        """Return the settings by name."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.init}

    def fit(self, X: Items | npt.ArrayLike, y: None = None) -> Self:  # noqa: ARG002 - as in scikit-learn
        """Compute the components from an (n, p) matrix, or from the coordinates of `Items`."""
        self.ids_, self.labels_ = (X.ids, X.labels) if isinstance(X, Items) else (None, None)
        vectors = (X if isinstance(X, Items) else Items._without_warnings(X)).coordinates
        n, p = vectors.shape
        varying = self._varying_columns(vectors)
        self.mean_ = vectors.mean(axis=0)
        deviation = vectors.std(axis=0, ddof=1)
        self.scale_ = np.where(varying & (deviation > 0), deviation, 1.0) if self.standardize else np.ones(p)
        values, axes = principal_axes(vectors, self.mean_, self.scale_)
        d = self._dimensions(values, n)
        self.components_ = np.ascontiguousarray(axes[:, :d].T)
        self.explained_variance_ratio_ = values[:d] / values.sum()
        self.embedding_ = self._project(vectors)
        return self

    def fit_transform(self, X: Items | npt.ArrayLike, y: None = None) -> FloatArray:
        """Compute the components and return the (n, d) coordinates."""
        return self.fit(X, y).embedding_

    def transform(self, X: npt.ArrayLike) -> FloatArray:
        """Return the (m, d) coordinates of other vectors."""
        self._require_fitted()
        vectors = np.asarray(X, dtype=np.float64)
        if vectors.ndim != 2 or vectors.shape[1] != len(self.mean_):
            raise InvalidItems(f"vectors have shape {vectors.shape}: give shape (m, {len(self.mean_)}), as in the fit")
        return self._project(vectors)

    def to_items(
        self, *, scaled: bool = False, ids: Sequence[ItemId] | None = None, labels: Sequence[str] | None = None
    ) -> Items:
        """Return the embedding as `Items` for a `Search`; ids and labels default to the original ones."""
        self._require_fitted()
        names, texts = self.ids_ if ids is None else ids, self.labels_ if labels is None else labels
        items = Items._without_warnings(self.embedding_, names, texts)
        return items.scaled() if scaled else items

    def _project(self, vectors: FloatArray) -> FloatArray:
        return np.asarray(((vectors - self.mean_) / self.scale_) @ self.components_.T)

    def _varying_columns(self, vectors: FloatArray) -> npt.NDArray[np.bool_]:
        if self.constant not in ("refuse", "drop"):
            raise InvalidParameter(f"constant is {self.constant!r}: use 'refuse' or 'drop'", field="constant")
        is_varying = np.ptp(vectors, axis=0) > 0
        if self.constant == "refuse" and not is_varying.all():
            flat = np.flatnonzero(~is_varying)
            raise InvalidItems(
                f"{'column' if len(flat) == 1 else 'columns'} {listed(flat.tolist())} of {vectors.shape[1]} (from 0) "
                f"{'is' if len(flat) == 1 else 'are'} constant over all items ({vectors[0, flat[0]]:g} in column "
                f"{flat[0]}): remove {'it' if len(flat) == 1 else 'them'}, or use constant='drop'"
            )
        return np.asarray(is_varying)

    def _dimensions(self, values: FloatArray, n: int) -> int:
        target = self.n_components
        is_a_number = isinstance(target, int | float | np.number) and not isinstance(target, bool)
        if is_a_number and 0 < target < 1:
            cumulative_shares = np.cumsum(values) / values.sum()
            d = int(np.searchsorted(cumulative_shares, target * (1.0 - 1e-12))) + 1
        elif is_a_number and target >= 1 and target == int(target):
            d = int(target)
        else:
            raise InvalidParameter(
                f"n_components is {target!r}: give a whole number, or a fraction between 0 and 1", field="n_components"
            )
        rank = int((values > 1e-12 * values[0]).sum())
        if n < d + 2:
            raise InvalidItems(
                f"{n} items for {d} dimensions: an embedding needs at least {d + 2}; use fewer dimensions"
            )
        if d > rank:
            raise InvalidItems(
                f"the vectors vary in only {rank} directions, {d} were requested: use at most {rank} dimensions"
            )
        return d

    def _require_fitted(self) -> None:
        if not hasattr(self, "embedding_"):
            raise InvalidParameter("this PCA is not fitted yet: call fit first")

"""Progress of a fit, reported to a callback or as a bar on standard error."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pairseek.errors import MissingExtra


@dataclass(frozen=True)
class FitProgress:
    """A step of the optimiser.

    Attributes
    ----------
    stage
        ``"path"`` while the shrinkage decreases, ``"all triplets"`` in the final fit.
    shrinkage
        Current λ.
    iteration
        Number of the step at this shrinkage.
    loss
        Mean objective over the triplets.
    validation_loss
        Validation loss of the last completed shrinkage; NaN before the first.

    Examples
    --------
    >>> import numpy as np
    >>> import pairseek as ps
    >>> from pairseek.embed import STE, simulate_triplets
    >>> items = ps.Items(np.random.default_rng(0).standard_normal((12, 2)))
    >>> steps = []
    >>> method = STE(random_state=0, progress=steps.append)
    >>> embedding = method.fit(simulate_triplets(items, 200, rng=0))
    >>> steps[0].stage, steps[-1].stage
    ('path', 'all triplets')
    """

    stage: str
    shrinkage: float
    iteration: int
    loss: float
    validation_loss: float

    def __str__(self) -> str:
        held = "" if self.validation_loss != self.validation_loss else f", held out {self.validation_loss:.4f}"
        return f"{self.stage}: shrinkage {self.shrinkage:.3g}, step {self.iteration}, loss {self.loss:.4f}{held}"


@contextlib.contextmanager
def reporting(
    progress: bool | Callable[[FitProgress], None],  # noqa: FBT001 - the public parameter of the embedding
) -> Iterator[Callable[[FitProgress], None]]:
    """Yield a function that receives progress: the caller's, one that updates a bar, or one that does nothing."""
    if callable(progress):
        yield progress
        return
    if not progress:
        yield lambda _: None
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    except ModuleNotFoundError:
        raise MissingExtra("a progress bar", "cli") from None
    console = Console(stderr=True)
    columns = (BarColumn(bar_width=12), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda step: bar.update(task, description=str(step))

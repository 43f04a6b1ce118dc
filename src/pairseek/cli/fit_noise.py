"""Command ``pairseek fit-noise``: maximum-likelihood fits of the noise constant to triplets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pairseek.cli.items import read_items, read_triplets
from pairseek.cli.options import AsJson, Coordinates, Scaled, Where
from pairseek.embed import NoiseFits, fit_noise
from pairseek.errors import InvalidParameter


def command(
    items: Annotated[Path, typer.Argument(metavar="ITEMS", help="Items with coordinates, as CSV, .npy, .npz or .mat.")],
    triplets: Annotated[Path, typer.Argument(metavar="TRIPLETS", help="Triplets of item ids, as CSV.")],
    *,
    coordinates: Coordinates = None,
    where: Where = None,
    scaled: Scaled = False,
    folds: Annotated[
        int, typer.Option(metavar="N", help="Number of cross-validation folds; 0 disables cross-validation.")
    ] = 5,
    start: Annotated[
        float | None, typer.Option(metavar="K", help="Initial k for the optimiser. The result does not depend on it.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Random seed of the folds.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Fit the noise constant k to triplets, for each response model.

    The models combine logistic and probit responses with constant, normalized
    and decaying noise. Use triplets that the embedding was not fitted to.
    """
    if folds < 0 or folds == 1:
        raise InvalidParameter(f"--folds is {folds}: give a whole number, at least 2, or 0 for no cross-validation")
    catalogue = read_items(items, coordinates=coordinates, scaled=scaled)
    data = read_triplets(triplets, catalogue.ids, "--where", where)
    fits = fit_noise(catalogue, data, folds=folds or None, start=start, rng=seed)
    if as_json:
        typer.echo(json.dumps({"best": fits.best.record(), "fits": [fit.record() for fit in fits]}, indent=1))
        return
    _show(Console(highlight=False), fits)


def _show(console: Console, fits: NoiseFits) -> None:
    best = fits.best
    console.print(
        Text(f"{best.count:,} triplets. Models in order of log-likelihood; guessing would give -0.6931 per triplet.\n")
    )
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("response", "noise"):
        table.add_column(heading)
    for heading in ("k", "±", "log-likelihood", "per triplet", "held out"):
        table.add_column(heading, justify="right")
    for fit in fits:
        table.add_row(
            fit.response.name,
            str(fit.response.noise),
            f"{fit.k:.4g}",
            f"{fit.standard_error:.2g}",
            f"{fit.log_likelihood:,.1f}",
            f"{fit.mean_log_likelihood:.5f}",
            f"{fit.cross_validated:.5f}",
        )
    console.print(table)
    for fit in fits:
        if fit.note:
            console.print(Text(f"\n{fit.response.name}, {fit.response.noise} noise: {fit.note}."))
    kind = type(best.response).__name__
    console.print(Text(f'\nIn a search: response=ps.{kind}({best.k:.6g}, "{best.response.noise}")'))

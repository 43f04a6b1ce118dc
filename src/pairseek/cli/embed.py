"""Command ``pairseek embed``: coordinates of items from triplets or vectors."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from pairseek.cli.items import ItemNames, read_item_names, read_items, read_triplets
from pairseek.cli.options import AsJson, Coordinates, Where
from pairseek.cli.runs import print_paths
from pairseek.core.text import plural
from pairseek.core.types import JSON
from pairseek.core.validation import one_of
from pairseek.embed import METHODS, PCA, Triplets, choose_dimension, provenance, save_items
from pairseek.embed.base import TripletEmbedding
from pairseek.embed.dimension import DIMENSIONS, DimensionChoice
from pairseek.embed.provenance import check_items_path
from pairseek.errors import InvalidParameter
from pairseek.experiments.figure_style import require_drawing
from pairseek.model.items import Items

AUTO = "auto"
_UNSEEN_RULES = ("refuse", "mean")
_HELD_OUT_SHARE = 0.1
_VARIANCE_SHARE = 0.9


def command(
    source: Annotated[
        Path, typer.Argument(metavar="FILE", help="Triplets as CSV; with --method pca, items with feature vectors.")
    ],
    *,
    out: Annotated[Path, typer.Option(metavar="FILE.csv", help="Output file of the items.")] = Path("items.csv"),
    method: Annotated[
        str, typer.Option(metavar="NAME", help="Method: ckl, ste, tste or gnmds for triplets; pca for vectors.")
    ] = "ckl",
    dimensions: Annotated[
        str,
        typer.Option(
            "--dimensions",
            "-d",
            metavar="D|auto",
            help="Number of dimensions; auto cross-validates. For pca, also a share of the variance, such as 0.9.",
        ),
    ] = AUTO,
    items: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="CSV of all items (id, label) in their order; a triplet with another item is an error.",
        ),
    ] = None,
    coordinates: Coordinates = None,
    unseen: Annotated[
        str,
        typer.Option(metavar="RULE", help="Items without triplets: refuse, or mean (place them at the mean)."),
    ] = _UNSEEN_RULES[0],
    where: Where = None,
    test_where: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN=VALUE", help="Hold out the triplets with this value instead of a random share."),
    ] = None,
    held_out: Annotated[
        float, typer.Option(metavar="SHARE", help="Share of triplets to hold out for the test error.")
    ] = _HELD_OUT_SHARE,
    mu: Annotated[
        float | None,
        typer.Option(metavar="MU", help="Constant that ckl adds to each squared distance.  [dim]\\[1][/]"),
    ] = None,
    alpha: Annotated[
        float | None, typer.Option(metavar="A", help="Degrees of freedom of tste.  [dim]\\[dimensions - 1][/]")
    ] = None,
    shrinkage: Annotated[
        float | None, typer.Option(metavar="L", help="Strength of shrinkage to the mean.  [dim]\\[by validation][/]")
    ] = None,
    standardize: Annotated[
        bool, typer.Option("--standardize", metavar="", help="With pca: divide each feature by its standard deviation.")
    ] = False,
    drop_constant: Annotated[
        bool, typer.Option("--drop-constant", metavar="", help="With pca: drop constant columns.")
    ] = False,
    scaled: Annotated[
        bool, typer.Option("--scaled", metavar="", help="Centre the coordinates and scale them as the paper does.")
    ] = False,
    seed: Annotated[int, typer.Option(metavar="N", help="Random seed.")] = 0,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Plot the cross-validated error by dimension to a .png or .svg file (-d auto)."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compute coordinates of items from triplets or feature vectors.

    A triplet states that an anchor is more similar to one item than to
    another. The result is a CSV file of items and a JSON file that records how
    they were computed.
    """
    one_of(method, "--method", [*METHODS, PCA.name])
    check_items_path(out)
    if plot is not None:
        require_drawing()
        if method == PCA.name or dimensions != AUTO:
            raise InvalidParameter("--plot shows how the dimension was chosen: use it with triplets and -d auto")
    settings = {
        name: value for name, value in (("mu", mu), ("alpha", alpha), ("shrinkage", shrinkage)) if value is not None
    }
    vector_options = {"--coordinates": coordinates, "--standardize": standardize, "--drop-constant": drop_constant}
    triplet_options = {
        "--items": items,
        "--unseen": unseen != _UNSEEN_RULES[0],
        "--where": where,
        "--test-where": test_where,
        "--held-out": held_out != _HELD_OUT_SHARE,
    }
    names, choice = None, None
    if method == PCA.name:
        _refuse_options(method, triplet_options, settings)
        embedding: TripletEmbedding | PCA = _fit_pca(
            source, dimensions, coordinates, standardize=standardize, drop=drop_constant
        )
        record = provenance(embedding)
    else:
        _refuse_options(method, vector_options, settings.keys() - METHODS[method]().get_params())
        one_of(unseen, "--unseen", _UNSEEN_RULES)
        names = None if items is None else read_item_names(items)
        triplets = _split_triplets(source, names, where, test_where, held_out, seed)
        base = METHODS[method](**settings, unseen=unseen, random_state=seed, progress=True)  # type: ignore[arg-type]
        choice = _choose_dimension(dimensions, triplets.fitted, base, seed)
        base.set_params(n_components=choice.chosen if choice else _parse_dimension_count(dimensions))
        embedding = base.fit(triplets.fitted)
        record = {**provenance(embedding, held_out=triplets.held_out), "triplets": len(triplets.fitted)}
        if choice is not None:
            record["dimension_choice"] = choice.record()
    result = embedding.to_items(scaled=scaled, labels=None if names is None else names.labels)
    files = [*save_items(result, out, record, scaled=scaled)]
    if plot is not None and choice is not None:
        files.append(choice.plot(plot))
    if as_json:
        typer.echo(json.dumps({**record, "files": [str(path) for path in files]}, indent=1))
        return
    _show(Console(highlight=False), record, choice, result, files)


def _refuse_options(method: str, options: Mapping[str, object], parameters: Iterable[str]) -> None:
    """Raise `InvalidParameter` for an option that the method does not use."""
    used = [option for option, value in options.items() if value]
    for option in [*used, *(f"--{name}" for name in sorted(parameters))]:
        raise InvalidParameter(f"{option} does not apply to {method}: leave it out")


@dataclass(frozen=True)
class _TripletSplit:
    """Triplets to fit, and triplets held out for the test error."""

    fitted: Triplets
    held_out: Triplets | None


def _split_triplets(
    source: Path,
    names: ItemNames | None,
    where: list[str] | None,
    test_where: list[str] | None,
    held_out: float,
    seed: int,
) -> _TripletSplit:
    ids = None if names is None else names.ids
    if not test_where:
        data = read_triplets(source, ids, "--where", where)
        if held_out == 0:
            return _TripletSplit(data, None)
        return _TripletSplit(*data.split(held_out, seed))
    # Both parts share one list of items, because an item may occur in only one part.
    ids = Triplets.from_csv(source).ids if ids is None else ids
    tested = read_triplets(source, ids, "--test-where", test_where)
    if where:
        return _TripletSplit(read_triplets(source, ids, "--where", where), tested)
    raise InvalidParameter("--test-where without --where: also select the triplets to fit, such as --where alg=Random")


def _choose_dimension(text: str, triplets: Triplets, base: TripletEmbedding, seed: int) -> DimensionChoice | None:
    if text != AUTO:
        _parse_dimension_count(text)
        return None
    dimensions = [d for d in DIMENSIONS if d + 2 <= triplets.n]
    return choose_dimension(triplets, dimensions or (1,), method=base, rng=seed)


def _parse_dimension_count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise InvalidParameter(f"--dimensions is {text!r}: give a whole number, at least 1, or auto")
    return int(text)


def _fit_pca(source: Path, text: str, coordinates: str | None = None, *, standardize: bool, drop: bool) -> PCA:
    components = _VARIANCE_SHARE if text == AUTO else _parse_components(text)
    embedding = PCA(n_components=components, standardize=standardize, constant="drop" if drop else "refuse")
    return embedding.fit(read_items(source, coordinates=coordinates, quiet=True))


def _parse_components(text: str) -> int | float:
    """Parse a number of dimensions, or a share of the variance."""
    with contextlib.suppress(ValueError):
        number = int(text) if text.isdecimal() else float(text)
        if 0 < number < 1 or (number >= 1 and float(number).is_integer()):
            return number
    raise InvalidParameter(f"--dimensions is {text!r}: give a whole number, at least 1, or a share such as 0.9")


def _show(console: Console, record: JSON, choice: DimensionChoice | None, items: Items, files: list[Path]) -> None:
    if choice is not None:
        console.print(Text(f"Cross-validation of the dimension:\n{choice}\n"))
    console.print(Text(f"{record['method'].upper()}: {items.n:,} items in {plural(items.d, 'dimension')}."))
    if "variance_kept" in record:
        console.print(Text(f"They keep {record['variance_kept']:.1%} of the variance."))
    elif record["held_out_triplet_error"] is not None:
        count, error = record["held_out_triplets"], record["held_out_triplet_error"]
        console.print(Text(f"{error:.1%} of the {count:,} held-out triplets are wrong."))
    print_paths(console, files)

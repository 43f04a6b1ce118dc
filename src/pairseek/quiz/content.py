"""Content of a quiz besides its tree: shown items, texts, pictures and the map."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from pairseek._version import MODEL_VERSION, __version__
from pairseek.core.maps import Plane, ellipse_radius, thinned
from pairseek.core.media import MEDIA
from pairseek.core.messages import words
from pairseek.core.types import JSON, FloatArray
from pairseek.errors import InvalidItems
from pairseek.model.items import Items
from pairseek.people.population import Population
from pairseek.quiz.encoding import MapFrame, encode_tree
from pairseek.quiz.tree import QuizTree
from pairseek.search.state import SearchState
from pairseek.store.media import StoredPicture
from pairseek.web.pages.map import MAX_DOTS, map_frame, placed_names
from pairseek.web.studies.cards import safe_html
from pairseek.web.studies.configuration import StudyConfiguration
from pairseek.web.studies.names import name_of
from pairseek.web.views.result import REGION_PROBABILITY, dots, plane_of

FORMAT = "pairseek quiz"
FORMAT_VERSION = 1
_MESSAGE_KEYS = (
    "quiz.", "start.begin", "start.how", "start.instructions", "start.tap", "run.progress", "run.side.", "run.of",
    "run.undo", "run.announce", "run.last.undo", "result.title", "result.map", "result.caption", "result.nearest",
    "result.share", "result.chosen.",
)  # fmt: skip
_SERVER_MEDIA = ("audio", "video")
# The map shows credible regions up to this fraction of its width beyond the items.
_MAP_MARGIN = 0.15


@dataclass(frozen=True, eq=False)
class QuizSource:
    """Source of a quiz: items, search and texts.

    Attributes
    ----------
    configuration, items
        Configuration and items of the study.
    copies
        Function from the name of a picture to its copies in several sizes.
    population
        Population that the study has learned.
    """

    configuration: StudyConfiguration
    items: Items
    copies: Callable[[str], Sequence[StoredPicture]] = field(default=lambda _: ())
    population: Population | None = None

    def search(self, seed: int) -> SearchState:
        """Return the initial state of a session with this seed."""
        return SearchState(self.configuration.resolved(self.items, self.population), seed)


def check_media(items: Items) -> None:
    """Raise `InvalidItems` if an item has a medium that needs a server."""
    for name in _SERVER_MEDIA:
        if any(map(str, items.data.get(name, ()))):
            raise InvalidItems(
                f"the items have a column {name!r}, which needs a server, and a quiz has none: leave the column out, "
                f"or serve the items as a study"
            )


def quiz_record(source: QuizSource, tree: QuizTree, answers: int, seed: int) -> tuple[JSON, list[StoredPicture]]:
    """Return the record of a quiz, and the pictures of its items."""
    configuration, items = source.configuration, source.items
    messages = words(configuration.language).with_texts(configuration.texts)
    frame, drawing = _map(items, tree)
    shown = tree.shown_items()
    columns, pictures = _columns(items, shown, source.copies)
    record: JSON = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "pairseek": __version__,
        "model": MODEL_VERSION,
        "seed": seed,
        "language": configuration.language,
        "title": configuration.title,
        "question": configuration.question or messages.say("run.question"),
        "instructions": safe_html(configuration.instructions),
        "debrief": safe_html(configuration.debrief),
        "undo": configuration.offer.undo,
        "answers": answers,
        "words": messages.with_prefix(*_MESSAGE_KEYS),
        "map": drawing,
        "items": columns,
    }
    return record | encode_tree(tree, answers, items.d, frame), pictures


def _columns(
    items: Items, shown: Sequence[int], copies: Callable[[str], Sequence[StoredPicture]]
) -> tuple[JSON, list[StoredPicture]]:
    """Return the ids, labels and media of the shown items as columns, and their pictures."""
    ids = [str(items.ids[row]) for row in shown]
    names = [name_of({name: str(values[row]) for name, values in items.data.items()}) for row in shown]
    # A label derived from the card's content is not repeated next to it.
    labels = [
        name if items.labels[row] == derived else items.labels[row]
        for row, name, derived in zip(shown, ids, names, strict=True)
    ]
    columns: JSON = {"id": ids}
    if labels != ids:
        # Labels that are just the capitalized id need not be stored; many are.
        columns["label"] = [
            None if label == name[:1].upper() + name[1:] else label for name, label in zip(ids, labels, strict=True)
        ]
    pictures: list[StoredPicture] = []
    for name, medium in MEDIA.items():
        values = [str(items.data[name][row]) for row in shown] if name in items.data else []
        if not any(values) or medium.conversion == "caption":
            continue
        if medium.conversion == "picture":
            copies_of = {value: list(copies(value)) for value in dict.fromkeys(values) if value}
            pictures += [picture for sizes in copies_of.values() for picture in sizes]
            # Each entry is the name of a picture, followed by the width and height of each copy.
            columns[name] = [
                [value, *(size for picture in copies_of[value] for size in (picture.width, picture.height))]
                if value
                else None
                for value in values
            ]
        else:
            columns[name] = [safe_html(value) if medium.conversion == "markdown" else value for value in values]
    alts = [str(items.data["alt"][row]) if "alt" in items.data else "" for row in shown]
    if pictures or "markdown" in columns:
        # These words describe pictures and formatted text that have no label.
        columns["alt"] = [
            alt or (derived if label == name else "")
            for alt, derived, label, name in zip(alts, names, labels, ids, strict=True)
        ]
    return columns, pictures


def _map(items: Items, tree: QuizTree) -> tuple[MapFrame, JSON | None]:
    """Return the map of the items, wide enough for every estimate, and the data to draw it."""
    if not items.d:
        return MapFrame(np.zeros(2), np.zeros((2, 0))), None
    map_plane = plane_of(items)
    all_dots = dots(items)
    left, low, right, high = _extent(np.array([(x, y) for x, y, _, _ in all_dots]), map_plane, tree).tolist()
    placement, width, height = map_frame([(left, low), (right, high)])
    # The vertical axis of a drawing points downwards.
    axes = np.array([[placement.scale], [-placement.scale]]) * map_plane.axes.T
    frame = MapFrame(np.array(placement.place(0.0, 0.0)) - axes @ map_plane.centre, axes)
    drawn_dots = [(*placement.place_rounded(x, y), colour or "") for x, y, colour, _ in thinned(all_dots, MAX_DOTS)]
    # Names must not hide the middle, where most estimates are.
    names = placed_names(all_dots, placement, (width // 2, height // 2), (width, height))
    drawing: JSON = {
        "size": [width, height],
        "origin": frame.origin.tolist(),
        "axes": frame.axes.tolist(),
        "dots": drawn_dots,
        "names": names,
    }
    return frame, drawing


def _extent(positions: FloatArray, map_plane: Plane, tree: QuizTree) -> FloatArray:
    """Return the lowest and highest map coordinates of the items, the estimates and most of their credible regions."""
    d, axes = len(map_plane.centre), map_plane.axes
    points = map_plane.project(np.array([result.point[:d] for result in tree.results.values()]))
    reach = ellipse_radius(REGION_PROBABILITY) * np.sqrt(
        [np.maximum(np.diag(axes.T @ result.covariance[:d, :d] @ axes), 0.0) for result in tree.results.values()]
    )
    margin = _MAP_MARGIN * float(np.ptp(positions, axis=0).max())
    low = np.maximum((points - reach).min(axis=0), positions.min(axis=0) - margin)
    high = np.minimum((points + reach).max(axis=0), positions.max(axis=0) + margin)
    lowest = np.minimum.reduce([low, positions.min(axis=0), points.min(axis=0)])
    highest = np.maximum.reduce([high, positions.max(axis=0), points.max(axis=0)])
    return np.concatenate([lowest, highest])

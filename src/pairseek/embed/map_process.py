"""Learning of a similarity map in a process of low priority, so that nobody who is answering waits for it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from pairseek.core.types import JSON, ItemId
from pairseek.embed.similarity_map import SimilarityMap
from pairseek.embed.triplets import Triplets
from pairseek.errors import InvalidItems, InvalidTriplets
from pairseek.learning.process import read_task, run_apart

_ERRORS = {"triplets": InvalidTriplets, "items": InvalidItems}


def learn_map_apart(
    judged: Triplets,
    apart: Triplets | None = None,
    *,
    dimensions: int | None = None,
    start: SimilarityMap | None = None,
    labels: Sequence[str] | None = None,
) -> SimilarityMap:
    """Learn as `SimilarityMap.learn` does, in another process with one thread and low priority."""
    task = {
        "ids": list(judged.ids),
        "judged": judged.rows.tolist(),
        "apart": None if apart is None else apart.rows.tolist(),
        "dimensions": dimensions,
        "start": None if start is None else start.record(),
        "labels": None if labels is None else list(labels),
    }
    answer = run_apart(__name__, task)
    if "error" in answer:
        raise _ERRORS[answer["about"]](answer["error"])
    return SimilarityMap.from_record(answer["map"])


def main() -> None:
    """Read a task from standard input, learn, and write the map to standard output."""
    json.dump(_answer(read_task()), sys.stdout, allow_nan=False)


def _answer(task: JSON) -> JSON:
    ids: list[ItemId] = task["ids"]
    try:
        learned = SimilarityMap.learn(
            Triplets(task["judged"], ids),
            None if task["apart"] is None else Triplets(task["apart"], ids),
            dimensions=task["dimensions"],
            start=None if task["start"] is None else SimilarityMap.from_record(task["start"]),
            labels=task["labels"],
        )
    except (InvalidTriplets, InvalidItems) as error:
        return {"error": str(error), "about": "items" if isinstance(error, InvalidItems) else "triplets"}
    return {"map": learned.record()}


if __name__ == "__main__":
    main()

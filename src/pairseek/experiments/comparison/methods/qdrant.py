"""Queries of the vector database Qdrant as a method; they need the extra ``rivals``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from pairseek.core.types import FloatArray, ItemId
from pairseek.core.validation import one_of
from pairseek.errors import MissingExtra
from pairseek.experiments.comparison.methods.utilities import UtilityMethod, standardized
from pairseek.experiments.comparison.protocol import Knowledge
from pairseek.people.choices import Choices

QdrantQuery: TypeAlias = Literal["average", "best", "context", "feedback"]
"""Recommend by the average vector, recommend by the best score, context of pairs, or relevance feedback."""
WinnersAndLosers: TypeAlias = list[tuple[int, int]]


@dataclass
class Qdrant(UtilityMethod):
    """Scores of a query with winners as positive and losers as negative examples; random questions.

    Parameters
    ----------
    query
        See `QdrantQuery`.
    scale
        Logits per standard deviation of the scores.
    feedback
        Weight, in relevance feedback, of a pair of examples that won different fractions of their comparisons. The
        target, the mean of the winners, has weight 1.
    """

    query: QdrantQuery = "average"
    scale: float = 1.0
    feedback: float = 1.0
    knows: Knowledge = "vectors"

    def __post_init__(self) -> None:
        one_of(self.query, "query", get_args(QdrantQuery))

    def begin(self, items: Sequence[ItemId], vectors: FloatArray | None, others: Choices | None) -> None:  # noqa: ARG002
        """Begin with equal items."""
        assert vectors is not None
        self._scores = qdrant_scores(vectors, self.query, self.feedback)
        self._answers: WinnersAndLosers = []
        self.utility = np.zeros(len(items))

    def tell(self, pair: tuple[int, int], outcome: int | None) -> None:
        """Query again with one more answer."""
        if outcome is not None:
            self._answers.append((outcome, sum(pair) - outcome))
            scores = self._scores(self._answers)
            self.utility = self.scale * standardized(scores)


def qdrant_scores(
    vectors: FloatArray, query: QdrantQuery, feedback: float = 1.0
) -> Callable[[WinnersAndLosers], FloatArray]:
    """Return a function that maps answers, winner first, to (n,) scores of an in-memory client with cosine distance."""
    models, client = _client_with_items(vectors)
    # Examples are given as vectors, because points given by id are left out of the results.
    rows = vectors.tolist()

    def score(answers: WinnersAndLosers) -> FloatArray:
        scores = np.zeros(len(rows))
        if answers:
            results = client.query_points(
                "items", query=_query(models, rows, query, answers, feedback), limit=len(rows)
            )
            for point in results.points:
                scores[point.id] = point.score
        return scores

    return score


def _query(models: Any, rows: list[list[float]], query: QdrantQuery, answers: WinnersAndLosers, feedback: float) -> Any:
    if query == "feedback":
        won = np.bincount([a for a, _ in answers], minlength=len(rows))
        shown = won + np.bincount([b for _, b in answers], minlength=len(rows))
        examples = [
            models.FeedbackItem(example=rows[row], score=won[row] / shown[row]) for row in np.flatnonzero(shown)
        ]
        strategy = models.NaiveFeedbackStrategyParams(a=1.0, b=1.0, c=feedback)
        target = np.mean([rows[a] for a, _ in answers], axis=0).tolist()
        return models.RelevanceFeedbackQuery(
            relevance_feedback=models.RelevanceFeedbackInput(
                target=target, feedback=examples, strategy=models.NaiveFeedbackStrategy(naive=strategy)
            )
        )
    if query == "context":
        pairs = [models.ContextPair(positive=rows[a], negative=rows[b]) for a, b in answers]
        return models.ContextQuery(context=pairs)
    examples = models.RecommendInput(
        positive=[rows[a] for a, _ in answers],
        negative=[rows[b] for _, b in answers],
        strategy=models.RecommendStrategy({"average": "average_vector", "best": "best_score"}[query]),
    )
    return models.RecommendQuery(recommend=examples)


def _client_with_items(vectors: FloatArray) -> tuple[Any, Any]:
    try:
        from qdrant_client import QdrantClient, models
    except ModuleNotFoundError:
        raise MissingExtra("Qdrant", "rivals") from None
    client = QdrantClient(":memory:")
    size = models.VectorParams(size=vectors.shape[1], distance=models.Distance.COSINE)
    client.create_collection("items", vectors_config=size)
    client.upsert("items", [models.PointStruct(id=row, vector=vector) for row, vector in enumerate(vectors.tolist())])
    return models, client

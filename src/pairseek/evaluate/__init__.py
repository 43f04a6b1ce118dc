"""Evaluation of searches by replay of recorded choices."""

from pairseek.evaluate.evaluation import evaluate
from pairseek.evaluate.results import Agreement, EvaluationResults
from pairseek.evaluate.spec import Evaluation, strategies_from

__all__ = ["Agreement", "Evaluation", "EvaluationResults", "evaluate", "strategies_from"]

"""How well a search would have served people whose choices were recorded."""

from pairseek.evaluate.evaluation import evaluate
from pairseek.evaluate.results import Agreement, EvaluationResults
from pairseek.evaluate.spec import Evaluation, strategies_from

__all__ = ["Agreement", "Evaluation", "EvaluationResults", "evaluate", "strategies_from"]

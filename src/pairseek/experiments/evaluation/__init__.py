"""Evaluation of searches by replay of recorded choices.

Examples
--------
>>> from pairseek.evaluate import strategies_from
>>> [type(strategy).__name__ for strategy in strategies_from("infogain,random")]
['InfoGain', 'Random']
"""

from pairseek.experiments.evaluation.evaluation import evaluate
from pairseek.experiments.evaluation.results import Agreement, EvaluationResults
from pairseek.experiments.evaluation.specification import Evaluation, strategies_from

__all__ = ["Agreement", "Evaluation", "EvaluationResults", "evaluate", "strategies_from"]

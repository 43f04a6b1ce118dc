"""Simulation experiments: specifications, trials, tables and figures, and the experiments of the paper.

Examples
--------
>>> from pairseek.experiments import SPECIFICATIONS
>>> SPECIFICATIONS["figure2"]("quick").labels[:3]
('InfoGain', 'EPMV', 'MCMV')
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from pairseek.core.lazy import LazyMembers as _LazyMembers

if _TYPE_CHECKING:
    from pairseek.experiments.comparison.comparison import compare
    from pairseek.experiments.comparison.protocol import BaseMethod, Method
    from pairseek.experiments.comparison.results import ComparisonResults
    from pairseek.experiments.comparison.specification import Comparison, read_comparison
    from pairseek.experiments.measures import MEASURES
    from pairseek.experiments.paper import SPECIFICATIONS
    from pairseek.experiments.reproduction import REPRODUCTIONS, ReproductionOptions, reproduce
    from pairseek.experiments.results import Paired, Results
    from pairseek.experiments.runs.plan import Outcome, Task
    from pairseek.experiments.runs.plan import RunStatus as Progress
    from pairseek.experiments.simulation import run
    from pairseek.experiments.specification import Contender, ResponseSpec, Setting, Specification
    from pairseek.experiments.specification_files import read_record, read_specification, to_toml
    from pairseek.experiments.trial import run_trial

# Loaded on first use: the service and quizzes need only the runs.
_MEMBERS = _LazyMembers[_Any](
    {
        "BaseMethod": "pairseek.experiments.comparison.protocol:BaseMethod",
        "Comparison": "pairseek.experiments.comparison.specification:Comparison",
        "ComparisonResults": "pairseek.experiments.comparison.results:ComparisonResults",
        "Method": "pairseek.experiments.comparison.protocol:Method",
        "compare": "pairseek.experiments.comparison.comparison:compare",
        "read_comparison": "pairseek.experiments.comparison.specification:read_comparison",
        "ResponseSpec": "pairseek.experiments.specification:ResponseSpec",
        "Contender": "pairseek.experiments.specification:Contender",
        "MEASURES": "pairseek.experiments.measures:MEASURES",
        "Outcome": "pairseek.experiments.runs.plan:Outcome",
        "Paired": "pairseek.experiments.results:Paired",
        "Progress": "pairseek.experiments.runs.plan:RunStatus",
        "REPRODUCTIONS": "pairseek.experiments.reproduction:REPRODUCTIONS",
        "Results": "pairseek.experiments.results:Results",
        "SPECIFICATIONS": "pairseek.experiments.paper:SPECIFICATIONS",
        "Setting": "pairseek.experiments.specification:Setting",
        "Specification": "pairseek.experiments.specification:Specification",
        "Task": "pairseek.experiments.runs.plan:Task",
        "ReproductionOptions": "pairseek.experiments.reproduction:ReproductionOptions",
        "read_record": "pairseek.experiments.specification_files:read_record",
        "read_specification": "pairseek.experiments.specification_files:read_specification",
        "reproduce": "pairseek.experiments.reproduction:reproduce",
        "run": "pairseek.experiments.simulation:run",
        "run_trial": "pairseek.experiments.trial:run_trial",
        "to_toml": "pairseek.experiments.specification_files:to_toml",
        # Deprecated names, used until version 0.2.
        "Answering": "pairseek.experiments.specification:ResponseSpec",
        "Wishes": "pairseek.experiments.reproduction:ReproductionOptions",
    }
)

__all__ = [
    "MEASURES",
    "REPRODUCTIONS",
    "SPECIFICATIONS",
    "BaseMethod",
    "Comparison",
    "ComparisonResults",
    "Contender",
    "Method",
    "Outcome",
    "Paired",
    "Progress",
    "ReproductionOptions",
    "ResponseSpec",
    "Results",
    "Setting",
    "Specification",
    "Task",
    "compare",
    "read_comparison",
    "read_record",
    "read_specification",
    "reproduce",
    "run",
    "run_trial",
    "to_toml",
]


def __getattr__(name: str) -> _Any:
    return _MEMBERS.attribute_of(__name__, name)

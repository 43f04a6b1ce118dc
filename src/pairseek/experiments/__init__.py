"""Simulation experiments: specifications, trials, tables and figures, and the experiments of the paper.

Examples
--------
>>> from pairseek.experiments import SPECIFICATIONS
>>> SPECIFICATIONS["figure2"]("quick").labels[:3]
('InfoGain', 'EPMV', 'MCMV')
"""

from pairseek.experiments.measures import MEASURES
from pairseek.experiments.paper import SPECIFICATIONS
from pairseek.experiments.reproduction import REPRODUCTIONS, Wishes, reproduce
from pairseek.experiments.results import Paired, Results
from pairseek.experiments.simulation import run
from pairseek.experiments.spec import Answering, Contender, Setting, Specification
from pairseek.experiments.specification_files import read_record, read_specification, to_toml
from pairseek.experiments.trial import run_trial
from pairseek.runs.plan import Outcome, Task
from pairseek.runs.plan import RunStatus as Progress

__all__ = [
    "MEASURES",
    "REPRODUCTIONS",
    "SPECIFICATIONS",
    "Answering",
    "Contender",
    "Outcome",
    "Paired",
    "Progress",
    "Results",
    "Setting",
    "Specification",
    "Task",
    "Wishes",
    "read_record",
    "read_specification",
    "reproduce",
    "run",
    "run_trial",
    "to_toml",
]

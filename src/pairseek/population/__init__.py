"""Population models learned from recorded choices of earlier people."""

from pairseek.population.choices import Choices
from pairseek.population.model import FitOptions
from pairseek.population.population import Population

__all__ = ["Choices", "FitOptions", "Population"]

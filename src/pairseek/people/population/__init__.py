"""Population models learned from recorded choices of earlier people."""

from pairseek.people.choices import Choices
from pairseek.people.population.model import FitOptions
from pairseek.people.population.population import Population

__all__ = ["Choices", "FitOptions", "Population"]

"""Learning from people who came before: what most like, where people are, how reliably they answer."""

from pairseek.population.choices import Choices
from pairseek.population.model import FitOptions
from pairseek.population.population import Population

__all__ = ["Choices", "FitOptions", "Population"]

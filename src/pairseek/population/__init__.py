"""Learning from people who came before: what most like, where people are, how reliably they answer."""

from pairseek.population.choices import Choices
from pairseek.population.model import Learned
from pairseek.population.population import Population

__all__ = ["Choices", "Learned", "Population"]

"""Posteriors: inference of the user point from answers."""

from pairseek.posteriors.base import Posterior
from pairseek.posteriors.ep import EP
from pairseek.posteriors.grid import Grid
from pairseek.posteriors.particles import Particles

POSTERIORS = {posterior.name: posterior for posterior in (EP, Particles, Grid)}

__all__ = ["EP", "POSTERIORS", "Grid", "Particles", "Posterior"]

"""Ways of inferring the user point."""

from pairseek.posteriors.base import Posterior
from pairseek.posteriors.grid import Grid
from pairseek.posteriors.laplace import Laplace
from pairseek.posteriors.particles import Particles

POSTERIORS = {posterior.name: posterior for posterior in (Particles, Laplace, Grid)}

__all__ = ["POSTERIORS", "Grid", "Laplace", "Particles", "Posterior"]

"""Embeddings from triplets or vectors, noise fits, and a health check for catalogues.

Examples
--------
>>> from pairseek.embed import Triplets
>>> Triplets.from_ids([("plum", "cherry", "leek"), ("leek", "onion", "plum")]).ids
('cherry', 'leek', 'onion', 'plum')
"""

from pairseek.embed.active import ActiveTriplets, TripletQuery
from pairseek.embed.base import FitProgress, TripletEmbedding
from pairseek.embed.dimension import DimensionChoice, choose_dimension
from pairseek.embed.findings import Finding
from pairseek.embed.health import Health, check
from pairseek.embed.methods import CKL, GNMDS, METHODS, STE, TSTE
from pairseek.embed.noise import NoiseFit, NoiseFits, fit_noise, fit_noise_to_answers
from pairseek.embed.placement import Placement
from pairseek.embed.provenance import provenance, read_provenance, save_items
from pairseek.embed.shrinkage_path import PathStep
from pairseek.embed.simulation import simulate_triplets
from pairseek.embed.triplets import Triplets
from pairseek.embed.vectors import PCA

__all__ = [
    "CKL",
    "GNMDS",
    "METHODS",
    "PCA",
    "STE",
    "TSTE",
    "ActiveTriplets",
    "DimensionChoice",
    "Finding",
    "FitProgress",
    "Health",
    "NoiseFit",
    "NoiseFits",
    "PathStep",
    "Placement",
    "TripletEmbedding",
    "TripletQuery",
    "Triplets",
    "check",
    "choose_dimension",
    "fit_noise",
    "fit_noise_to_answers",
    "provenance",
    "read_provenance",
    "save_items",
    "simulate_triplets",
]

"""Data that ships with pairseek. Nothing is read until it is asked for."""

from pairseek.datasets.colours import colours, hex_from_oklab, oklab_from_srgb, srgb_from_oklab

__all__ = ["colours", "hex_from_oklab", "oklab_from_srgb", "srgb_from_oklab"]

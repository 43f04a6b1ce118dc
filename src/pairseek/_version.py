"""The version, in one place."""

__version__ = "0.2.0"

MODEL_VERSION = 9
"""Version of the mathematics: it changes when the same parts and answers lead to another belief or pair."""

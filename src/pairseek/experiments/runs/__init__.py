"""Batches of runs: plan, runner, journal, worker processes and cluster."""

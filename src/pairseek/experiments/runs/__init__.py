"""Batches of runs: plan, runner, journal, worker processes, figure style and HTML report."""

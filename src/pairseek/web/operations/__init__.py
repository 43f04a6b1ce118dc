"""Logs, metrics and readiness for operators, and background threads that survive errors."""

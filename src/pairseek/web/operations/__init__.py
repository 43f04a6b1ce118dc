"""What operators watch, and background work: logs, metrics, readiness, and threads that survive errors."""

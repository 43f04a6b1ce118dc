"""Views: functions that compute the contexts of pages from the service."""

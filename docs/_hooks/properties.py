"""Labels of cached properties for the API reference: griffe knows those of the standard library alone."""

from __future__ import annotations

from griffe import stdlib_decorators

stdlib_decorators["pairseek.core.lazy.cached_property"] = {"cached", "property"}

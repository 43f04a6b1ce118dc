"""View of the API reference."""

from __future__ import annotations

import json

from pairseek.core.types import JSON
from pairseek.web.pages.contexts.account import DocsPage, Operation, Shape


def docs_page(openapi: JSON) -> DocsPage:
    """Return the context of the API reference."""
    schemas = openapi.get("components", {}).get("schemas", {})
    operations: list[Operation] = []
    for path, methods in openapi["paths"].items():
        for method, facts in methods.items():
            replies: JSON = facts["responses"]
            good: JSON = next((reply for status, reply in replies.items() if status.startswith("2")), {})
            operations.append(
                {
                    "id": facts["operationId"],
                    "method": method.upper(),
                    "path": path,
                    "description": facts.get("description") or facts.get("summary", ""),
                    "parameters": [
                        {"name": one["name"], "place": one["in"], "description": one.get("description")}
                        for one in facts.get("parameters", [])
                    ],
                    "takes": _schema(facts.get("requestBody", {}), schemas),
                    "gives": _schema(good, schemas),
                }
            )
    return {"operations": operations}


def _schema(message: JSON, schemas: JSON) -> Shape | None:
    schema: JSON | None = message.get("content", {}).get("application/json", {}).get("schema")
    if not schema:
        return None
    many = schema.get("type") == "array"
    name = str((schema["items"] if many else schema).get("$ref", "")).rpartition("/")[2]
    if name not in schemas:
        return None
    return {"name": f"a list of {name}" if many else name, "schema": json.dumps(schemas[name], indent=1)}

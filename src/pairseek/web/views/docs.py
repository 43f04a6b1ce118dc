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
            success: JSON = next((reply for status, reply in replies.items() if status.startswith("2")), {})
            operations.append(
                {
                    "id": facts["operationId"],
                    "method": method.upper(),
                    "path": path,
                    "description": facts.get("description") or facts.get("summary", ""),
                    "parameters": [
                        {
                            "name": parameter["name"],
                            "place": parameter["in"],
                            "description": parameter.get("description"),
                        }
                        for parameter in facts.get("parameters", [])
                    ],
                    "takes": _schema(facts.get("requestBody", {}), schemas),
                    "gives": _schema(success, schemas),
                }
            )
    return {"operations": operations}


def _schema(message: JSON, schemas: JSON) -> Shape | None:
    schema: JSON | None = message.get("content", {}).get("application/json", {}).get("schema")
    if not schema:
        return None
    is_list = schema.get("type") == "array"
    name = str((schema["items"] if is_list else schema).get("$ref", "")).rpartition("/")[2]
    if name not in schemas:
        return None
    return {"name": f"a list of {name}" if is_list else name, "schema": json.dumps(schemas[name], indent=1)}

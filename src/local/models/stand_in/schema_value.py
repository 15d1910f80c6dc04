"""The smallest value that a JSON Schema allows, for requests with structured output."""

from __future__ import annotations

import math
from typing import Any

Json = dict[str, Any]

_MAX_DEPTH = 20


def smallest(schema: Any, root: Json | None = None, depth: int = 0) -> Any:
    """A minimal value valid for the schema: required properties only; `pattern` and `not` are not looked at."""
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return None
    root = schema if root is None else root
    if "$ref" in schema:
        return smallest(resolve(schema["$ref"], root), root, depth + 1)
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    for key in ("anyOf", "oneOf"):
        if schema.get(key):
            return smallest(schema[key][0], root, depth + 1)
    if schema.get("allOf"):
        merged = {key: value for part in schema["allOf"] for key, value in part.items()}
        return smallest({**merged, **{k: v for k, v in schema.items() if k != "allOf"}}, root, depth + 1)
    return _of_type(schema, root, depth)


def resolve(reference: str, root: Json) -> Any:
    """What a local `$ref` points at."""
    node: Any = root
    for part in reference.removeprefix("#").strip("/").split("/"):
        node = node.get(part.replace("~1", "/").replace("~0", "~")) if part and isinstance(node, dict) else node
    return node


def _of_type(schema: Json, root: Json, depth: int) -> Any:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    match kind[0] if isinstance(kind, list) else kind:
        case "object":
            properties = schema.get("properties") or {}
            return {name: smallest(properties.get(name, {}), root, depth + 1) for name in schema.get("required", ())}
        case "array":
            return [smallest(schema.get("items", {}), root, depth + 1) for _ in range(schema.get("minItems", 0))]
        case "integer" | "number" as numeric:
            return _number(schema, whole=numeric == "integer")
        case "boolean":
            return False
        case "null":
            return None
    return "-" * schema.get("minLength", 0)


def _number(schema: Json, *, whole: bool) -> float:
    if "exclusiveMinimum" in schema:
        above = float(schema["exclusiveMinimum"])
        return math.floor(above) + 1 if whole else above + 1e-6
    low: float = schema.get("minimum", min(0, schema.get("maximum", 0)))
    return math.ceil(low) if whole else low

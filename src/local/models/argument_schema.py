"""Whether arguments fit a tool's JSON Schema: the part of the standard that tool schemas use. No I/O."""

from __future__ import annotations

from typing import Any

from local.models.chat import Json

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}


def fits(value: Any, schema: Json, root: Json | None = None) -> bool:
    """Whether `value` is what `schema` asks for: type, enum, const, properties, required, additionalProperties, items,
    anyOf, oneOf (as anyOf), allOf and local `$ref`s. Keywords that are not known here are taken as satisfied.
    """
    root = schema if root is None else root
    if "$ref" in schema:
        return fits(value, _resolve(str(schema["$ref"]), root), root)
    if not _has_type(value, schema.get("type")):
        return False
    if value not in schema.get("enum", (value,)) or value != schema.get("const", value):
        return False
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices and not any(fits(value, choice, root) for choice in choices):
        return False
    if not all(fits(value, part, root) for part in schema.get("allOf", ())):
        return False
    if isinstance(value, dict):
        return _fits_object(value, schema, root)
    items = schema.get("items", {})
    return not isinstance(value, list) or all(fits(item, items, root) for item in value)


def _has_type(value: Any, names: Any) -> bool:
    for name in [names] if isinstance(names, str) else names or ():
        # In Python True is a number, in JSON it is not.
        if isinstance(value, _TYPES.get(name, (object,))) and (name == "boolean" or not isinstance(value, bool)):
            return True
    return not names


def _fits_object(value: Json, schema: Json, root: Json) -> bool:
    properties = schema.get("properties", {})
    if any(key not in value for key in schema.get("required", ())):
        return False
    if schema.get("additionalProperties") is False and not properties.keys() >= value.keys():
        return False
    return all(fits(item, properties.get(key, {}), root) for key, item in value.items())


def _resolve(reference: str, root: Json) -> Json:
    found: Any = root
    for part in reference.removeprefix("#/").split("/"):
        found = found.get(part, {}) if isinstance(found, dict) else {}
    return found if isinstance(found, dict) else {}

"""The check of a call's arguments against the tool's JSON Schema, before a person is asked for approval."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter, ValidationError

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError as Fault

log = logging.getLogger(__name__)

MOST_FAULTS = 5
MOST_CHARACTERS = 200  # of one fault, and of the names of the arguments
KEPT_VALIDATORS = 64
_PLAIN = (
    "properties", "items", "prefixItems", "enum", "const", "allOf", "minItems", "maxItems", "minLength", "maxLength",
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
)  # fmt: skip
"""The keywords that are checked as JSON Schema says. Not checked are those that look elsewhere (`$ref`), that run a
pattern of a stranger (`pattern`) or that negate: without them a schema only allows more."""
_CONVERTED: dict[str, TypeAdapter[Any]] = {
    "integer": TypeAdapter(int),
    "number": TypeAdapter(float),
    "boolean": TypeAdapter(bool),
}


def argument_fault(tool: str, parameters: Mapping[str, Any], args: Mapping[str, Any]) -> str:
    """Return an error in the arguments of a call with the list of arguments, for the model; empty if they are valid.

    A value that tools convert, such as the text "5" for a number, is valid. An unusable schema checks nothing: the tool
    itself, or the server behind it, then reports the error.
    """
    try:
        found = _validator(json.dumps(parameters, sort_keys=True)).iter_errors(dict(args))
        faults = [_told(fault) for fault, _ in zip(found, range(MOST_FAULTS), strict=False)]
    except Exception as error:  # noqa: BLE001 - whatever a stranger's schema sets off, the call goes on
        log.warning("the schema of %s cannot be used to check arguments: %r", tool, error)
        return ""
    if not faults:
        return ""
    known = ", ".join(map(str, parameters.get("properties") or ())) or "none"
    return f"{tool}: bad arguments: {'; '.join(faults)}. Expected: {_cut(known)}."


@lru_cache(KEPT_VALIDATORS)
def _validator(schema: str) -> Any:
    """Return a validator. Raises for an invalid schema."""
    from jsonschema import Draft202012Validator

    parameters = json.loads(schema, object_hook=_without_dialect)
    Draft202012Validator.check_schema(parameters)
    return _validator_class()(parameters)


def _without_dialect(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema without `$schema`, which would have it checked by other keywords than ours."""
    return {key: value for key, value in schema.items() if key != "$schema" or not isinstance(value, str)}


@cache
def _validator_class() -> Any:
    from jsonschema import Draft202012Validator, validators  # takes long, and is rarely needed

    checks = {name: Draft202012Validator.VALIDATORS[name] for name in _PLAIN}
    own = {"type": _type, "required": _required, "additionalProperties": _others, "anyOf": _any_of, "oneOf": _any_of}
    types = Draft202012Validator.TYPE_CHECKER
    return validators.create(Draft202012Validator.META_SCHEMA, {**checks, **own}, type_checker=types)


def _fault(message: str, *path: str) -> Fault:
    from jsonschema.exceptions import ValidationError as Fault

    return Fault(message, path=path)


def _type(validator: Any, types: Any, instance: Any, schema: Any) -> Iterator[Fault]:
    kinds = [types] if isinstance(types, str) else types
    if not any(validator.is_type(instance, kind) or _is_converted(instance, kind) for kind in kinds):
        yield _fault(f"expected {' or '.join(kinds)}, got {_kind(validator, instance)}")


def _is_converted(instance: Any, kind: str) -> bool:
    """Whether tools accept the value for one of that type."""
    if kind not in _CONVERTED:
        return False
    try:
        _CONVERTED[kind].validate_python(instance)
    except ValidationError:
        return False
    return True


def _kind(validator: Any, instance: Any) -> str:
    kinds = ("null", "boolean", "integer", "number", "string", "array", "object")
    return next((kind for kind in kinds if validator.is_type(instance, kind)), type(instance).__name__)


def _required(validator: Any, names: Any, instance: Any, schema: Any) -> Iterator[Fault]:
    if validator.is_type(instance, "object"):
        yield from (_fault("is missing", name) for name in names if name not in instance)


def _others(validator: Any, allowed: Any, instance: Any, schema: Any) -> Iterator[Fault]:
    """The keyword `additionalProperties`."""
    if not validator.is_type(instance, "object") or "patternProperties" in schema:
        return
    for name in instance.keys() - schema.get("properties", {}).keys():
        if allowed is False:
            yield _fault("there is no such argument", name)
        else:
            yield from validator.descend(instance[name], allowed, path=name)


def _any_of(validator: Any, branches: Any, instance: Any, schema: Any) -> Iterator[Fault]:
    """The keywords `anyOf` and `oneOf`: one of the schemas has to fit."""
    if not any(validator.evolve(schema=branch).is_valid(instance) for branch in branches):
        kinds = dict.fromkeys(branch.get("type") for branch in branches if isinstance(branch, dict))
        named = " or ".join(kind for kind in kinds if isinstance(kind, str))
        yield _fault(f"expected {named or 'another form'}, got {_kind(validator, instance)}")


def _told(fault: Fault) -> str:
    return _cut(f"{'.'.join(map(str, fault.absolute_path)) or 'arguments'}: {fault.message}")


def _cut(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"

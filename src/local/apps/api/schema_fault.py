"""What is wrong with a JSON Schema of a client's, of which model servers say no more than that they cannot read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from jsonschema.exceptions import SchemaError

MOST_CHARACTERS = 200


class SchemaFault(NamedTuple):
    """`place` is where in the schema the value at fault stands, as `properties.city.type`; `text` what is wrong."""

    place: str
    text: str


def schema_fault(schema: Any) -> SchemaFault | None:
    """The fault of what no draft in use takes for a schema; None for what one of them does. Takes milliseconds.

    `schema` is nested no deeper than a request's body may be.
    """
    from jsonschema import Draft201909Validator, Draft202012Validator, FormatChecker  # takes long, and is rarely needed
    from jsonschema.exceptions import SchemaError

    any_pattern = FormatChecker(())  # model servers have other regular expressions than Python
    try:
        Draft202012Validator.check_schema(schema, any_pattern)
    except SchemaError as error:
        if not Draft201909Validator(Draft201909Validator.META_SCHEMA).is_valid(schema):  # has lists as `items`
            return SchemaFault(".".join(str(part)[:80] for part in error.absolute_path), _text(error))
    return None


def _text(error: SchemaError) -> str:
    if names := next((each.validator_value for each in error.context or () if each.validator == "enum"), None):
        return f"expected one of {', '.join(names)}"
    if error.validator == "type":
        types = error.validator_value
        return f"expected {types if isinstance(types, str) else ' or '.join(types)}"
    return error.message if len(error.message) <= MOST_CHARACTERS else f"…{error.message[-MOST_CHARACTERS:]}"

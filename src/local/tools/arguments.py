"""What a tool's `run` takes: the JSON Schema for the model, and the check of what the model sends."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

_SINGLE = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Arguments:
    """The parameters of a bound method. `schema` is their JSON Schema, an object that allows no others.

    Each needs a type; the text in `Annotated[str, "…"]` describes it. Raises `TypeError` for a signature without.
    """

    def __init__(self, run: Callable[..., Any]) -> None:
        hints = get_type_hints(run, include_extras=True)
        fields: dict[str, Any] = {}
        for name, parameter in inspect.signature(run).parameters.items():
            if name not in hints or parameter.kind not in _SINGLE:
                raise TypeError(f"parameter {parameter} of {run.__qualname__}: expected a name and a type, name: type")
            default = ... if parameter.default is parameter.empty else parameter.default
            # The alias is the name: pydantic itself has no use for fields called copy, json or _x.
            fields[f"argument_{name}"] = (Annotated[_described(hints[name]), Field(alias=name)], default)
        self._fields = {f"argument_{name}": name for name in inspect.signature(run).parameters}
        self._model: type[BaseModel] = create_model("Arguments", __config__=ConfigDict(extra="forbid"), **fields)
        self.schema: dict[str, Any] = _without_titles(self._model.model_json_schema())

    def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments to call `run` with, typed and with the defaults. Raises `ValueError` that a model can read."""
        try:
            valid = self._model.model_validate(arguments)
        except ValidationError as error:
            problems = "; ".join(
                f"{'.'.join(map(str, problem['loc'])) or 'arguments'}: {problem['msg']}" for problem in error.errors()
            )
            expected = ", ".join(self._fields.values()) or "none"
            raise ValueError(f"{problems}. Expected: {expected}.") from None
        return {name: getattr(valid, field) for field, name in self._fields.items()}


def _described(hint: Any) -> Any:
    if get_origin(hint) is not Annotated:
        return hint
    kind, *notes = get_args(hint)
    return Annotated[(kind, *(Field(description=note) if isinstance(note, str) else note for note in notes))]


def _without_titles(schema: Any) -> Any:
    """pydantic titles every field by its own name, which only costs the model tokens."""
    if isinstance(schema, dict):
        return {
            key: _without_titles(value)
            for key, value in schema.items()
            if not (key == "title" and isinstance(value, str))
        }
    return [_without_titles(item) for item in schema] if isinstance(schema, list) else schema

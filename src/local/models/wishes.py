"""What a request may go without: the form of the reply, and the probabilities of its tokens. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from local.errors import ModelError
from local.models.chat import Degraded, Json

# How many alternatives to each token are asked for: the five scores and as many others.
TOP_LOGPROBS = 10
LOGPROBS: Json = {"logprobs": True, "top_logprobs": TOP_LOGPROBS}

_REFUSALS = (400, 403, 422)  # OpenAI's own is 403 for the probabilities of some models
_FORMAT, _LOGPROBS = "a form of the reply", "token probabilities"
_WORDS = {_LOGPROBS: ("logprob",), _FORMAT: ("format", "schema", "grammar")}


class Wishes:
    """The wishes of one call. `granted` are the fields that are still asked for.

    Servers differ in which of them they know, and say so with a refusal: the call is then made without, and `learned`,
    which all calls of one model share, remembers it once that has helped. Those that ignore an unknown field are never
    noticed here.
    """

    def __init__(self, learned: set[str], *, form: Json, logprobs: bool) -> None:
        wished = {_LOGPROBS: LOGPROBS if logprobs else {}, _FORMAT: form}
        self._fields: dict[str, Json] = {name: fields for name, fields in wished.items() if fields}
        self._learned = learned
        self._dropped = self._fields.keys() & learned
        self.notes = [_note(name) for name in self._fields if name in learned]

    @property
    def granted(self) -> Json:
        """The fields of the request that say what is wished for."""
        left = [fields for name, fields in self._fields.items() if name not in self._dropped]
        return {key: value for fields in left for key, value in fields.items()}

    def refused(self, error: ModelError) -> Degraded | None:
        """What is left out from now on, because of that refusal; None if the failure has nothing to do with wishes."""
        left = [name for name in self._fields if name not in self._dropped]
        if not left or error.status not in _REFUSALS:
            return None
        text = str(error).lower()
        named = [name for name in left if any(word in text for word in _WORDS[name])]
        if not named and error.status == 403:
            return None
        name = (named or left)[0]
        self._dropped.add(name)
        return _note(name)

    def answered(self) -> None:
        """The server has taken the request as it now is."""
        self._learned |= self._dropped


def response_format(schema: Mapping[str, Any] | None) -> Json:
    """OpenAI's field for a reply that follows a JSON Schema; none without a schema.

    `strict` is for schemas that it allows: every object names all its fields as required and allows no others.
    """
    if schema is None:
        return {}
    described = {"name": "reply", "strict": _is_strict(schema), "schema": dict(schema)}
    return {"response_format": {"type": "json_schema", "json_schema": described}}


def _is_strict(schema: Any) -> bool:
    if isinstance(schema, list):
        return all(map(_is_strict, schema))
    if not isinstance(schema, Mapping):
        return True
    if schema.get("type") == "object":
        required, properties = schema.get("required", ()), schema.get("properties", {})
        if schema.get("additionalProperties") is not False or set(required) != set(properties):
            return False
    return all(map(_is_strict, schema.values()))


def _note(name: str) -> Degraded:
    return Degraded(f"the model's server does not take {name}; it answers without")

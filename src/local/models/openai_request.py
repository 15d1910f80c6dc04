"""The body of POST /v1/chat/completions. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from local.models.chat import Degraded, Json
from local.models.openai_dialects import Known
from local.models.openai_messages import to_openai

# The size of the context is set where the server is started; no request can change it.
_NOT_OURS = frozenset({"num_ctx"})


def chat_request(
    known: Known, messages: Sequence[Json], *, tools: Sequence[Json], think: bool, options: Mapping[str, Any] | None
) -> tuple[Json, list[Degraded]]:
    """The body for what this model can do and this server takes, and what had to be left out.

    A server that does not say what the model can do is asked for everything. `options` have Ollama's names.
    """
    model, capabilities, dialect = known.info.name, known.info.capabilities, known.dialect
    body: Json = {
        "model": model,
        "messages": to_openai(messages, dialect),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    notes = []
    if not capabilities or "thinking" in capabilities:
        body |= dialect.thinks if think else dialect.thinks_not
    elif think:
        notes.append(f"{model} cannot think aloud; it answers without")
    if tools and (not capabilities or "tools" in capabilities):
        body["tools"] = list(tools)
    elif tools:
        notes.append(f"{model} cannot call tools; it answers without")
    given = {name: value for name, value in (options or {}).items() if name not in _NOT_OURS and value is not None}
    if unknown := sorted(given.keys() - dialect.options.keys()):
        notes.append(f"the server of {model} has no option {', '.join(unknown)}; it answers without")
    body |= {
        dialect.options[option]: value for option, value in given.items() if _wanted(option, value, dialect.options)
    }
    return body, [Degraded(note) for note in notes]


def _wanted(option: str, value: Any, known: Mapping[str, str]) -> bool:
    # A negative num_predict means no limit, which here is no field.
    return option in known and not (option == "num_predict" and value < 0)

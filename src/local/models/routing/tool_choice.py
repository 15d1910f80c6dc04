"""Which tools a model is offered when it had better not have all of them. No I/O."""

from __future__ import annotations

import re
from collections.abc import Sequence

from local.models.chat import Json

_WORD = re.compile(r"\w{3,}")


def choose_tools(tools: Sequence[Json], messages: Sequence[Json], limit: int | None) -> list[Json]:
    """At most `limit` of the tools, in their order: those that were called in this conversation before those that share
    words with its last question, before all others."""
    if limit is None or len(tools) <= limit:
        return list(tools)
    called = {call["function"]["name"] for message in messages for call in message.get("tool_calls") or ()}
    asked = next((message.get("content") or "" for message in reversed(messages) if message.get("role") == "user"), "")
    question = _words(asked)

    def worth(tool: Json) -> tuple[bool, int]:
        function = tool["function"]
        about = _words(f"{function['name'].replace('_', ' ')} {function.get('description', '')}")
        return function["name"] in called, len(about & question)

    best = sorted(range(len(tools)), key=lambda index: worth(tools[index]), reverse=True)[:limit]
    return [tools[index] for index in sorted(best)]


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))

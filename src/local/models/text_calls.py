"""A tool call that a model wrote as text instead of making it. No I/O."""

from __future__ import annotations

from collections.abc import Sequence

from local.models.argument_schema import fits
from local.models.chat import Json, ToolCall
from local.models.text_call_dialects import written_calls

# Nobody writes a longer call as text, and reading it costs.
_LONGEST_CONTENT = 32_000
# How much of the content must be the call. What explains a call, or shows one in passing, is an answer.
_NEARLY_ALL = 0.8


def find_text_call(content: str, tools: Sequence[Json]) -> ToolCall | None:
    """The call that `content` is, or None if it is an answer.

    Accepted only if the tool is among `tools` (as in `ChatModel.chat`), the arguments fit its schema, and the call is
    nearly all of the content: a call that was not meant does more harm than one that has to be asked for again.
    """
    content = content.strip()
    schemas = {tool["function"]["name"]: tool["function"].get("parameters") or {} for tool in tools}
    if len(content) > _LONGEST_CONTENT or not any(name in content for name in schemas):
        return None
    for written, (name, arguments) in written_calls(content):
        name = name.removeprefix("functions.")
        nearly_all = len(written) >= _NEARLY_ALL * len(content)
        if nearly_all and name in schemas and fits(arguments, schemas[name]):
            return ToolCall(name, arguments)
    return None

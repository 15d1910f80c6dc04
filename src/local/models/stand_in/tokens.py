"""Counts tokens and cuts a conversation to the context, as Ollama does.

The tokenizer is a fixed rule: a token is four characters, rounded up; each message costs four tokens of markup. Cutting
follows Ollama's `chatPrompt` (server/prompt.go): the oldest messages go first, system messages and the last one stay,
and a tool result is never parted from the call that it answers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from local.models.stand_in.ollama_request import OllamaRefusal

Json = dict[str, Any]

CHARS_PER_TOKEN = 4
MARKUP_TOKENS = 4
DEFAULT_CONTEXT = 4096
OVERFLOW = "the input length exceeds the context length"


@dataclass(frozen=True, slots=True)
class FittedPrompt:
    """What the model really sees after cutting, and how many tokens that is."""

    messages: tuple[Json, ...]
    tools: tuple[Json, ...]
    tokens: int


def count(text: str) -> int:
    """Tokens in a text."""
    return -(-len(text) // CHARS_PER_TOKEN)


def fit(messages: Sequence[Json], tools: Sequence[Json], context: int, *, truncate: bool) -> FittedPrompt:
    """Cut the conversation to `context` tokens; with truncate false, too long a one is a `OllamaRefusal` 400."""
    tool_tokens = sum(count(json.dumps(tool)) for tool in tools)
    costs = [_cost(message) for message in messages]
    whole = tool_tokens + sum(costs)
    if whole <= context:
        return FittedPrompt(tuple(messages), tuple(tools), whole)
    if not truncate:
        raise OllamaRefusal(400, OVERFLOW)
    system = list(
        accumulate((c if m["role"] == "system" else 0 for m, c in zip(messages, costs, strict=True)), initial=0)
    )
    dropped = list(accumulate(costs, initial=0))
    for index in range(len(messages)):
        start = _block_start(messages, index)
        tokens = whole - dropped[start] + system[start]
        if tokens <= context or index == len(messages) - 1:
            break
    if tokens > context:
        return _front_cut(messages[-1], context)
    kept = [m for m in messages[:start] if m["role"] == "system"] + list(messages[start:])
    return FittedPrompt(tuple(kept), tuple(tools), tokens)


def _cost(message: Json) -> int:
    calls = message.get("tool_calls")
    text = len(message.get("content") or "") + len(message.get("thinking") or "")
    return MARKUP_TOKENS + -(-text // CHARS_PER_TOKEN) + (count(json.dumps(calls)) if calls else 0)


def _block_start(messages: Sequence[Json], index: int) -> int:
    start = index
    while start > 0 and messages[start]["role"] == "tool":
        start -= 1
    return start if messages[start].get("tool_calls") else index


def _front_cut(last: Json, context: int) -> FittedPrompt:
    # Not even the last message fits: Ollama's runner then cuts the front half away, system text and tools included.
    tail = str(last.get("content") or "")[-(context // 2) * CHARS_PER_TOKEN :]
    return FittedPrompt(({**last, "content": tail},), (), MARKUP_TOKENS + count(tail))


# A digit is a token of its own, as it is for the models that grade.
_TOKEN = re.compile(r"\d|[^\W\d]+|\s+|[^\w\s]|_")


def logprobs_of(text: str, alternatives: int) -> list[Json]:
    """One entry for each token; joined, the tokens are the text. `alternatives` 0 leaves them out."""
    entries = (
        {"token": token, "logprob": 0.0, "bytes": list(token.encode("utf-8", "replace"))}
        for token in _TOKEN.findall(text)
    )
    return [entry | ({"top_logprobs": [entry]} if alternatives else {}) for entry in entries]

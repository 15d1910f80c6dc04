"""Which tools a model is offered, by its size as far as its name tells. No I/O."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum

from local.models.chat import Json

_WEAK_BELOW, _FRONTIER_FROM = 12.0, 70.0  # billions of parameters
# 12b, e4b, 1.5b, 270m, 8x7b; not the active part of a mixture, as in 30b-a3b.
_SIZE = re.compile(r"(?<![a-z0-9.])(?:(\d+)x)?e?(\d+(?:\.\d+)?)([bm])(?![a-z0-9])")
_LARGE = re.compile(r"\b(gpt-[4-9]|o[1-9]|claude|gemini|grok|deepseek-(v\d|r\d|chat|reasoner)|kimi|glm-[4-9])|-large\b")
_SMALLER = re.compile(r"\b(mini|nano|lite|flash|haiku|small|tiny|air)\b")


class Tier(StrEnum):
    """What a model can be trusted with."""

    WEAK = "weak"
    MID = "mid"
    FRONTIER = "frontier"


def tier_of(model: str) -> Tier:
    """By the size in the name, else by the family; a name that tells nothing is `mid`."""
    name = model.lower()
    size = parameters(name)
    if size is not None:
        return Tier.WEAK if size < _WEAK_BELOW else Tier.FRONTIER if size >= _FRONTIER_FROM else Tier.MID
    return Tier.FRONTIER if _LARGE.search(name) and not _SMALLER.search(name) else Tier.MID


def parameters(name: str) -> float | None:
    """The billions of parameters that a name in lower case tells."""
    millions = {"b": 1000.0, "m": 1.0}
    sizes = [int(many or 1) * float(number) * millions[unit] for many, number, unit in _SIZE.findall(name)]
    return max(sizes) / 1000 if sizes else None


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

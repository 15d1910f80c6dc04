"""How many tokens a prompt will be, and how the model's window is divided. No I/O."""

from __future__ import annotations

import json
import math
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, reduce
from operator import add
from typing import Any, Self

from local.errors import ContextTooLarge
from local.models.chat import Json

MESSAGE_TOKENS = 6  # the template's markup around a message; ChatML's is 5, Gemma's 5, OpenAI's 4
MARGIN = 1.02
SHARE_OF_ERROR = 0.3  # learned of an estimate that was too high; one that was too low is corrected at once
LEAST_CREDIBLE = 0.5  # of the estimate; a server that counts less has left out what it had in its cache
IMAGE_AS_MESSAGES = 48  # a picture is some 290 tokens; Gemma's are 256
AFTER_OVERFLOW = 1.5  # times the window: what a prompt counts for that the server found too long
LEAST_RATE, HIGHEST_RATE = 0.1, 4.0

MASK_AT = 0.60
SUMMARISE_AT = 0.75
RESERVE_SHARE, MAX_RESERVE = 0.20, 4096
ROUND_SHARE = 0.25  # the results of one round of tool calls, as they enter
KEPT_SHARE = 0.25  # the last turns, which stay verbatim beside a summary
SUMMARY_SHARE = 0.15

_SYMBOLS = (string.digits + string.punctuation).encode()


@dataclass(frozen=True, slots=True)
class Size:
    """What a text or a prompt is made of: characters of ASCII words, digits and signs, all else; and messages."""

    words: int = 0
    symbols: int = 0
    others: int = 0
    messages: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(
            self.words + other.words,
            self.symbols + other.symbols,
            self.others + other.others,
            self.messages + other.messages,
        )

    @property
    def characters(self) -> tuple[int, int, int]:
        """Numbers of characters by kind, in the order of a meter's rates."""
        return self.words, self.symbols, self.others


def size_of(text: str) -> Size:
    """The size of a text that is no message by itself."""
    # An accent parts a word into more tokens; beyond Latin-1 a character is often a token or more.
    plain = text.encode("ascii", "ignore")
    words = len(plain.translate(None, _SYMBOLS))  # one pass: it is asked of every prompt, more than once
    return Size(words, len(plain) - words, len(text) - len(plain))


def size_of_message(message: Json) -> Size:
    """The size of one message: what is said, thought and called."""
    calls = message.get("tool_calls")
    parts = [str(message.get("content") or ""), str(message.get("thinking") or "")]
    images = len(message.get("images") or ())
    size = Size(messages=1 + IMAGE_AS_MESSAGES * images)
    return size_of("".join(parts) + (json.dumps(calls) if calls else "")) + size


def size_of_prompt(messages: Iterable[Json], tools: Sequence[Json]) -> Size:
    """The size of everything that is sent."""
    return reduce(add, map(size_of_message, messages), size_of_tools(tools))


class ToolFunction(dict[str, Any]):
    """A tool as the model is told of it, as JSON that is not changed any more; its size is counted once."""

    @cached_property
    def size(self) -> Size:
        """The size of the schema."""
        return size_of(json.dumps(self)) + Size(messages=1)


def size_of_tools(tools: Sequence[Json]) -> Size:
    """The size of the tools' schemas."""
    known = (tool if isinstance(tool, ToolFunction) else ToolFunction(tool) for tool in tools)
    return reduce(add, (tool.size for tool in known), Size())


@dataclass(frozen=True, slots=True)
class TokenMeter:
    """What is known of one model's tokenizer: tokens for a character of each kind.

    The rates to begin with were fitted to the tokenizers of Qwen2.5 and SmolLM2: English prose, JSON schemas, code and
    documentation are then within a tenth. A tokenizer made for English alone takes half as much again for German.
    """

    rates: tuple[float, float, float] = (0.22, 0.52, 0.8)

    def tokens(self, size: Size) -> int:
        """The estimate, with a margin."""
        return math.ceil(self._expected(size) * MARGIN)

    def message(self, message: Json) -> int:
        """The estimate for one message."""
        return self.tokens(size_of_message(message))

    def characters(self, text: str, tokens: int) -> int:
        """How many characters of a text like this one go into so many tokens."""
        return int(tokens * len(text) / max(1, self.tokens(size_of(text))))

    def corrected(self, size: Size, counted: int) -> Self:
        """The meter after the server has counted a prompt of that size (normalised least mean squares)."""
        expected = self._expected(size)
        if counted < expected * LEAST_CREDIBLE:
            return self
        squares = sum(number * number for number in size.characters)
        step = (counted - expected) / squares if squares else 0.0
        if step < 0:
            step *= SHARE_OF_ERROR
        return self._with(rate + step * number for rate, number in zip(self.rates, size.characters, strict=True))

    def overflowed(self, size: Size, window: int) -> Self:
        """The meter after the server found a prompt of that size too long for its window. It now errs far on the other
        side, since only one more try is made."""
        factor = AFTER_OVERFLOW * max(1.0, window / max(1.0, self._expected(size)))
        return self._with(rate * factor for rate in self.rates)

    def _expected(self, size: Size) -> float:
        kinds = zip(self.rates, size.characters, strict=True)
        return MESSAGE_TOKENS * size.messages + sum(rate * number for rate, number in kinds)

    def _with(self, rates: Iterable[float]) -> Self:
        words, symbols, others = (min(HIGHEST_RATE, max(LEAST_RATE, rate)) for rate in rates)
        return type(self)((words, symbols, others))


class Part(StrEnum):
    """What takes room in the window. System, tools, question and reserve are never cut."""

    SYSTEM = "system"
    TOOLS = "tools"
    SUMMARY = "summary"
    HISTORY = "history"
    QUESTION = "question"
    STEPS = "steps"
    RESERVE = "reserve"


@dataclass(frozen=True, slots=True)
class Limits:
    """The thresholds of a window of so many tokens."""

    window: int

    @property
    def reserve(self) -> int:
        """Kept free for the answer."""
        return min(MAX_RESERVE, self.share(RESERVE_SHARE))

    @property
    def room(self) -> int:
        """The most that a prompt may take."""
        return self.window - self.reserve

    @property
    def mask_at(self) -> int:
        """Above it, old tool results are masked."""
        return self.share(MASK_AT)

    @property
    def summarise_at(self) -> int:
        """Above it, a summary is due."""
        return self.share(SUMMARISE_AT)

    def share(self, part: float) -> int:
        """A part of the window, in tokens."""
        return int(self.window * part)


@dataclass(frozen=True, slots=True)
class Gauge:
    """How full the window is. `parts` are estimated tokens; `limit` is the whole window."""

    limit: int
    parts: Mapping[Part, int]

    @property
    def used(self) -> int:
        """Tokens of the prompt; the reserve is not among them."""
        return sum(tokens for part, tokens in self.parts.items() if part is not Part.RESERVE)

    @property
    def left(self) -> int:
        """Tokens of the window that the prompt leaves, at least one."""
        return max(1, self.limit - self.used)

    def as_json(self) -> dict[str, int | dict[str, int]]:
        """The gauge as the bus and the doors tell it."""
        return {"used": self.used, "limit": self.limit, "parts": {part.value: n for part, n in self.parts.items()}}

    def too_large(self) -> ContextTooLarge:
        """The error for a prompt that cannot be made smaller than this."""
        return ContextTooLarge(self.limit, {part.value: tokens for part, tokens in self.parts.items() if tokens})

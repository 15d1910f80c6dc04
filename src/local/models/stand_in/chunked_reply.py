"""A reply cut into the chunks in which it is sent, and the time they take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from local.models.stand_in.conversation import AssistantMessage, ToolUse
from local.models.stand_in.tokens import CHARS_PER_TOKEN, count

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ChunkedReply:
    """Chunks in sending order: all thinking, all content, then the calls. Delays are seconds."""

    thinking: tuple[str, ...] = ()
    content: tuple[str, ...] = ()
    calls: tuple[ToolUse, ...] = ()
    first_delay: float = 0.0
    chunk_delay: float = 0.0
    reason: str = "stop"

    def messages(self) -> Iterator[Json]:
        """Ollama's `message` of each chunk."""
        for text in self.thinking:
            yield {"role": "assistant", "content": "", "thinking": text}
        for text in self.content:
            yield {"role": "assistant", "content": text}
        for index, call in enumerate(self.calls):
            entry = call.as_message(f"call_{uuid4().hex[:8]}", index)
            yield {"role": "assistant", "content": "", "tool_calls": [entry]}

    @property
    def tokens(self) -> int:
        """Tokens generated, by the rule in `tokens`; a call costs what its JSON costs."""
        return count("".join(self.thinking + self.content)) + sum(
            count(repr(call.arguments)) + 1 for call in self.calls
        )

    def without_thinking(self) -> ChunkedReply:
        """The reply to a request that turned thinking off."""
        return replace(self, thinking=())

    def limited(self, tokens: int) -> ChunkedReply:
        """Cut after that many tokens, as the option num_predict does; calls that come too late are lost."""
        if tokens < 0 or self.tokens <= tokens:
            return self
        left, kept = tokens * CHARS_PER_TOKEN, []
        for chunks in (self.thinking, self.content):
            text = "".join(chunks)[:left]
            left -= len(text)
            kept.append(split(text, len(chunks[0])) if chunks else ())
        return replace(self, thinking=kept[0], content=kept[1], calls=(), reason="length")


def deliver(reply: AssistantMessage, chunk_chars: int, chunk_delay: float) -> ChunkedReply:
    """Cut a reply into chunks of `chunk_chars` characters."""
    thinking, content = split(reply.thinking, chunk_chars), split(reply.content, chunk_chars)
    return ChunkedReply(thinking, content, reply.calls, chunk_delay=chunk_delay)


def split(text: str, size: int) -> tuple[str, ...]:
    """Pieces of `size` characters, the last one shorter; none for an empty text."""
    size = max(size, 1)
    return tuple(text[start : start + size] for start in range(0, len(text), size))

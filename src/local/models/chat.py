"""The language-model side as the rest of the system sees it: messages in, typed deltas out."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Protocol

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """A piece of what the model thinks, in order."""

    text: str


@dataclass(frozen=True, slots=True)
class ContentDelta:
    """A piece of what the model says, in order."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call the model wants made. `id` is the server's and may be empty."""

    name: str
    arguments: Json
    id: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """What one model call cost. Tokens are counted, durations are seconds, both as the server reports them."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    durations: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Done:
    """The model has finished this message; nothing follows. `reason` is the server's word (stop, length, …)."""

    usage: Usage
    reason: str = "stop"
    model: str = ""


@dataclass(frozen=True, slots=True)
class Degraded:
    """Something that was asked for and left out, because this model cannot do it. A sentence for a person."""

    note: str


@dataclass(frozen=True, slots=True)
class CannotThink(Degraded):
    """A model that cannot think was asked to. A client says it once for each model."""

    @classmethod
    def of(cls, model: str) -> CannotThink:
        """The note about a model."""
        return cls(f"{model} cannot think aloud; it answers without")


@dataclass(frozen=True, slots=True)
class AwayDelta(Degraded):
    """Nobody answers for now, and the call waits until somebody does, or has waited for too long."""


@dataclass(frozen=True, slots=True)
class RestartDelta(AwayDelta):
    """The server has died in the middle of its answer, which begins again: what came before does not count."""


@dataclass(frozen=True, slots=True)
class TokenScore:
    """One generated token, and the natural logarithms of the probabilities of what might have stood in its place."""

    text: str
    alternatives: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class TokenScores:
    """Some more of the generated tokens, those of thinking included. Only where asked for and where a server knows."""

    tokens: tuple[TokenScore, ...]


@dataclass(frozen=True, slots=True)
class ProgressDelta:
    """How far the model has read its prompt: `done` of `total` tokens, of which `cached` were read before. Only where a
    server tells it."""

    done: int
    total: int
    cached: int = 0


Delta = ThinkingDelta | ContentDelta | ToolCall | TokenScores | ProgressDelta | Degraded | Done


async def whole_reply(stream: AsyncGenerator[Delta, None]) -> tuple[str, Usage]:
    """All that is said in a message, and the tokens that it took."""
    said, usage = list[str](), Usage()
    async with aclosing(stream):
        async for delta in stream:
            match delta:
                case ContentDelta(text):
                    said.append(text)
                case RestartDelta():
                    said.clear()
                case Done(used):
                    usage = used
    return "".join(said), usage


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What a server says of one model. `capabilities`: completion, tools, thinking, vision, embedding …; `parameters`
    are billions, None where the server does not say."""

    name: str
    capabilities: frozenset[str]
    context_length: int | None = None
    parameters: float | None = None


class ChatModel(Protocol):
    """One model server. Every failure is a `ModelError` that says what to do; a stream without `Done` is one, too."""

    def chat(
        self,
        model: str,
        messages: Sequence[Json],
        *,
        tools: Sequence[Json] = (),
        think: bool = False,
        options: Mapping[str, Any] | None = None,
        format: Json | None = None,
        logprobs: bool = False,
    ) -> AsyncGenerator[Delta, None]:
        """Stream one assistant message, ending with `Done`. Wrap it in `contextlib.aclosing`: closing it closes the
        connection, which stops the model; a bare `break` leaves that to the garbage collector.

        `messages` are Ollama's: {"role": system|user|assistant|tool, "content": str, "thinking"?, "tool_calls"?
        [{"id"?, "function": {"name", "arguments": object}}], "tool_name"?, "tool_call_id"?}. `tools` are
        {"type": "function", "function": {"name", "description", "parameters": JSON Schema}}. `format` is a JSON Schema
        that the content follows; `logprobs` asks for `TokenScores`. Both are left out, and told as `Degraded`, where a
        server refuses them, and may be ignored by one that does not know them.
        """
        ...

    async def embed(self, model: str, texts: Sequence[str]) -> list[list[float]]:
        """One vector for each text, in order."""
        ...

    async def show(self, model: str) -> ModelInfo:
        """What the server knows of a model; `ModelError(kind="model_missing")` if it does not have it."""
        ...

    async def load(self, model: str, options: Mapping[str, Any]) -> None:
        """Return when the server has the model in memory; at once where servers have no such thing. The `options` are
        those of the calls to come: a model loaded with others is loaded again."""
        ...

    async def close(self) -> None:
        """Close every connection."""
        ...

"""A model that plays a script."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from local.bus.messages import parted
from local.core.errors import ModelError
from local.models.chat import ContentDelta, Delta, Done, Json, ModelInfo, Usage

Item = str | Delta | Exception | asyncio.Event


@dataclass(frozen=True)
class Asked:
    """One call of the model: `messages` as they were `sent`, without the blocks of context before the questions."""

    messages: list[Json]
    sent: list[Json]
    tool_schemas: list[Json]
    tools: list[str]
    think: bool
    options: Mapping[str, Any]
    format: Json | None = None
    logprobs: bool = False
    in_words: bool = False

    @property
    def query(self) -> str:
        return next(str(message["content"]) for message in reversed(self.messages) if message["role"] == "user")

    @property
    def background(self) -> list[str]:
        """The lines of the block before the last question."""
        last = next(message for message in reversed(self.sent) if message["role"] == "user")
        return parted(str(last["content"])).background.splitlines()


def without_block(message: Json) -> Json:
    """A message without the block of context before its question."""
    if message["role"] != "user":
        return dict(message)
    return {**message, "content": parted(str(message["content"])).question}


class ScriptedModel:
    """Returns scripted output. An event is waited for, an exception raised, text becomes content."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.problem: ModelError | None = None
        self.parameters: float | None = 12.0  # billions
        self.loaded: tuple[str, dict[str, Any]] | None = None
        self.closed_early = asyncio.Event()
        self._scripts: defaultdict[str, deque[tuple[Item, ...]]] = defaultdict(deque)

    def will_say(self, *items: Item, to: str = "") -> None:
        """The next message; `to` is the query it answers, if any should not do."""
        self._scripts[to].append(items)

    async def chat(
        self,
        model: str,
        messages: Sequence[Json],
        *,
        tools: Sequence[Json] = (),
        think: bool = False,
        options: Mapping[str, Any] | None = None,
        format: Json | None = None,
        logprobs: bool = False,
        in_words: bool = False,
    ) -> AsyncGenerator[Delta, None]:
        names = [tool["function"]["name"] for tool in tools]
        plain, sent = list(map(without_block, messages)), [dict(message) for message in messages]
        asked = Asked(plain, sent, list(tools), names, think, options or {}, format, logprobs, in_words)
        self.asked.append(asked)
        script = self._scripts[asked.query] or self._scripts[""]
        assert script, f"the model was asked once too often: {asked.query}"
        try:
            items = script.popleft()
            for item in items:
                if isinstance(item, asyncio.Event):
                    await item.wait()
                elif isinstance(item, Exception):
                    raise item
                else:
                    yield ContentDelta(item) if isinstance(item, str) else item
            if not any(isinstance(item, Done) for item in items):
                yield Done(Usage(2, 1), model=model)
        except (asyncio.CancelledError, GeneratorExit):
            self.closed_early.set()
            raise

    async def embed(self, model: str, texts: Sequence[str]) -> list[list[float]]:
        raise NotImplementedError

    async def show(self, model: str) -> ModelInfo:
        if self.problem is not None:
            raise self.problem
        return ModelInfo(model, frozenset({"completion", "tools", "thinking"}), parameters=self.parameters)

    async def load(self, model: str, options: Mapping[str, Any]) -> None:
        self.loaded = model, dict(options)

    async def close(self) -> None:
        pass

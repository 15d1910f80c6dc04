"""Faults on demand: everything a model server has been seen to do wrong."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from local.models.stand_in.chunked_reply import ChunkedReply, split
from local.models.stand_in.conversation import Conversation
from local.models.stand_in.script import Expression

Json = dict[str, Any]


class FaultKind(StrEnum):
    """What goes wrong."""

    STATUS = "status"
    FIRST_TOKEN_DELAY = "first_token_delay"
    CHUNK_DELAY = "chunk_delay"
    EOF = "eof"
    ERROR_LINE = "error_line"
    HALF_LINE = "half_line"
    GARBAGE = "garbage"
    DISCONNECT = "disconnect"
    THINK_TAGS = "think_tags"
    CALL_AS_TEXT = "call_as_text"
    EMPTY = "empty"
    REPEAT_CALL = "repeat_call"
    FLOOD = "flood"


GENERATING = ("/api/chat", "/api/generate", "/v1/chat/completions")
_WIRE = frozenset({FaultKind.EOF, FaultKind.ERROR_LINE, FaultKind.HALF_LINE, FaultKind.GARBAGE, FaultKind.DISCONNECT})


class Disconnect(Exception):
    """The connection is to be dropped without an end."""


class InjectedFault(BaseModel):
    """One fault, injected `times` times after `skip` requests went well.

    It strikes requests to `path` (left out: all that generate text) whose body matches the regular expression `match`.
    `status` and `body`: for status. `seconds`: for the delays. `after`: chunks sent before the stream breaks.
    `message`: for error_line. `style`: for think_tags. `tokens`: for flood.
    """

    model_config = ConfigDict(extra="forbid")

    kind: FaultKind
    times: int = Field(1, ge=1)
    skip: int = Field(0, ge=0)
    path: str = ""
    match: Expression = ""
    status: int = Field(500, ge=400, le=599)
    body: str | Json = {"error": "model runner has unexpectedly stopped"}
    seconds: float = Field(0.0, ge=0)
    after: int = Field(1, ge=0)
    message: str = "an error was encountered while running the model"
    style: Literal["think", "channel"] = "think"
    tokens: int = Field(2000, ge=1)

    def strikes(self, path: str, body: str) -> bool:
        """Whether the fault concerns such a request."""
        return (path == self.path if self.path else path in GENERATING) and bool(re.search(self.match, body))


class FaultInjector:
    """The faults still to be injected."""

    def __init__(self) -> None:
        self._pending: list[InjectedFault] = []

    def add(self, fault: InjectedFault) -> None:
        """Inject one more fault."""
        self._pending.append(fault)

    def clear(self) -> None:
        """Forget the faults still to be injected."""
        self._pending.clear()

    def take(self, path: str, body: str) -> tuple[InjectedFault, ...]:
        """Use up what strikes this request: the oldest fault of each kind."""
        taken: dict[FaultKind, InjectedFault] = {}
        for fault in [fault for fault in self._pending if fault.strikes(path, body)]:
            if fault.skip:
                fault.skip -= 1
            elif fault.kind not in taken:
                taken[fault.kind] = fault
                fault.times -= 1
        self._pending = [fault for fault in self._pending if fault.times]
        return tuple(taken.values())


def twist(delivery: ChunkedReply, faults: Sequence[InjectedFault], conversation: Conversation) -> ChunkedReply:
    """Change what is said, and how fast, as the faults demand."""
    for fault in faults:
        match fault.kind:
            case FaultKind.FIRST_TOKEN_DELAY:
                delivery = replace(delivery, first_delay=delivery.first_delay + fault.seconds)
            case FaultKind.CHUNK_DELAY:
                delivery = replace(delivery, chunk_delay=fault.seconds)
            case FaultKind.THINK_TAGS:
                delivery = _leak(delivery, fault.style)
            case FaultKind.CALL_AS_TEXT if delivery.calls:
                call = {"name": delivery.calls[0].name, "arguments": delivery.calls[0].arguments}
                delivery = replace(delivery, content=split(json.dumps(call), 16), calls=())
            case FaultKind.EMPTY:
                delivery = replace(delivery, content=(), calls=())
            case FaultKind.REPEAT_CALL if conversation.calls:
                delivery = replace(delivery, content=(), calls=conversation.calls[-1:])
            case FaultKind.FLOOD:
                delivery = replace(delivery, content=("word",) * fault.tokens, calls=())
    return delivery


def _leak(delivery: ChunkedReply, style: Literal["think", "channel"]) -> ChunkedReply:
    opening, closing = ("<think>", "</think>") if style == "think" else ("<|channel>thought\n", "<channel|>")
    text = opening + "".join(delivery.thinking) + closing + "".join(delivery.content)
    # Five characters a chunk, so that the tags are cut across chunks.
    return replace(delivery, thinking=(), content=split(text, 5))


async def encoded(
    chunks: AsyncGenerator[Json, None], encode: Callable[[Json], bytes], faults: Sequence[InjectedFault]
) -> AsyncGenerator[bytes, None]:
    """Turn chunks into bytes, and break the stream where a fault says so, at the latest in place of its end."""
    fault = next((fault for fault in faults if fault.kind in _WIRE), None)
    sent = 0
    async with aclosing(chunks) as source:
        async for chunk in source:
            if fault and (sent >= fault.after or chunk["done"]):
                match fault.kind:
                    case FaultKind.DISCONNECT:
                        raise Disconnect
                    case FaultKind.GARBAGE:
                        yield b"\x00%&garbage\n"
                    case FaultKind.HALF_LINE:
                        whole = encode(chunk)
                        yield whole[: len(whole) // 2]
                    case FaultKind.ERROR_LINE:
                        yield encode({"error": fault.message, "done": True})
                if fault.kind is not FaultKind.GARBAGE:
                    return
                fault = None
            yield encode(chunk)
            sent += 1

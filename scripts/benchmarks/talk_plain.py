"""The baseline: what one writes without a bus of one's own, `zmq.asyncio` and one pydantic model.

The model carries the same header fields and the same payload as ours. Its first field is the subject, so that
ZeroMQ's prefix filter works on it.
"""

from __future__ import annotations

import asyncio
import time
from typing import Generic, TypeVar
from uuid import uuid4

import zmq
import zmq.asyncio
from pydantic import BaseModel

from benchmarks.peer import Pipe
from benchmarks.talk import TRACE, Meter, note, obey, request, result, until_answered
from local.bus.envelope import VERSION
from local.bus.messages import AnswerDialog, ToolRequest, ToolResult
from local.core.bus_address import BusAddress

P = TypeVar("P", bound=BaseModel)


class Plain(BaseModel, Generic[P]):
    """The header's fields and a typed payload."""

    subject: str
    v: int = VERSION
    id: str
    sender: str
    instance: str
    seq: int
    correlation_id: str
    cause_id: str | None = None
    in_reply_to: str | None = None
    session_id: str | None = None
    user_id: str | None = None
    sent_at: float
    ttl_ms: int | None = None
    payload: P


PlainNote, PlainRequest, PlainResult = Plain[AnswerDialog], Plain[ToolRequest], Plain[ToolResult]
NOTE, REQUEST, RESULT = "plain.note", "plain.request", "plain.result"


class PlainEnd:
    """A PUB and a SUB connected to the proxy; `subjects` are what it listens to."""

    def __init__(self, address: BusAddress, *subjects: str) -> None:
        context = zmq.asyncio.Context()
        self._pub, self._sub = context.socket(zmq.PUB), context.socket(zmq.SUB)
        self._pub.setsockopt(zmq.SNDHWM, 0)  # with the default it would lose most of a burst
        self._sub.setsockopt(zmq.RCVHWM, 0)
        self._pub.connect(address.publish_to)
        self._sub.connect(address.subscribe_to)
        for subject in subjects:
            self._sub.setsockopt(zmq.SUBSCRIBE, _prefix(subject))
        self._seq = 0

    async def send(self, kind: type[Plain[P]], subject: str, payload: P, in_reply_to: str | None = None) -> str:
        """Publish a message; returns its id."""
        self._seq += 1
        message = kind(
            subject=subject, id=uuid4().hex, sender="plain", instance="0123456789ab", seq=self._seq,
            correlation_id=TRACE.correlation_id, cause_id=TRACE.cause_id, in_reply_to=in_reply_to,
            session_id=TRACE.session_id, user_id=TRACE.user_id, sent_at=time.time(), payload=payload,
        )  # fmt: skip
        await self._pub.send(message.model_dump_json().encode())
        return message.id

    async def receive(self) -> bytes:
        """The next message, not yet parsed."""
        data: bytes = await self._sub.recv()
        return data


def talk(pipe: Pipe, address: BusAddress) -> None:
    """The talker's process."""
    asyncio.run(_talk(pipe, address))


def listen(pipe: Pipe, address: BusAddress) -> None:
    """The listener's process."""
    asyncio.run(_listen(pipe, address))


class _Talker:
    def __init__(self, end: PlainEnd) -> None:
        self._end = end

    async def say(self) -> None:
        await self._end.send(PlainNote, NOTE, note())

    async def ask(self) -> None:
        request_id = await self._end.send(PlainRequest, REQUEST, request())
        while True:
            reply = PlainResult.model_validate_json(await self._end.receive())
            if reply.in_reply_to == request_id:
                return


async def _talk(pipe: Pipe, address: BusAddress) -> None:
    talker = _Talker(PlainEnd(address, RESULT))
    await until_answered(talker)
    await obey(pipe, talker)


async def _listen(pipe: Pipe, address: BusAddress) -> None:
    end, meter = PlainEnd(address, NOTE, REQUEST), Meter(pipe)
    pipe.send("ready")
    while True:
        data = await end.receive()
        if data.startswith(_prefix(NOTE)):
            await _take(PlainNote.model_validate_json(data), meter)
        else:
            asked = PlainRequest.model_validate_json(data)
            await end.send(PlainResult, RESULT, result(), in_reply_to=asked.id)


async def _take(message: Plain[AnswerDialog], meter: Meter) -> None:
    meter.hit()


def _prefix(subject: str) -> bytes:
    return b'{"subject":"' + subject.encode()

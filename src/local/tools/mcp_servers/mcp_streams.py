"""What the SDK reads and writes, over the lines of a contained server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from local.services.sandbox.contained_server import ContainedServer

Read = MemoryObjectReceiveStream[SessionMessage | Exception]
Written = MemoryObjectSendStream[SessionMessage]


@asynccontextmanager
async def streams_of(server: ContainedServer) -> AsyncIterator[tuple[Read, Written]]:
    """A transport of the SDK. A line that is no message is an exception in the stream, which the SDK passes over; the
    end of the server is that of the stream."""
    heard, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    written, to_send = anyio.create_memory_object_stream[SessionMessage](0)

    async def hear() -> None:
        async with heard:
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                while line := await server.read_line():
                    await heard.send(_message(line))

    async def send() -> None:
        with suppress(OSError, anyio.ClosedResourceError):
            async for message in to_send:
                await server.write_line(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode())

    async with anyio.create_task_group() as tasks, read, written, to_send:
        tasks.start_soon(hear)
        tasks.start_soon(send)
        yield read, written
        tasks.cancel_scope.cancel()


def _message(line: bytes) -> SessionMessage | Exception:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error

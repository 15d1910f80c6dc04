"""The base of every tool: a docstring, a signature and `run`; the rest is manners."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections import defaultdict, deque
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from local.config import Settings
from local.errors import ConfigError, ToolError
from local.protocol.envelope import Envelope
from local.protocol.messages import (
    ErrorInfo,
    Message,
    QueryCancel,
    ToolRequest,
    ToolResult,
    ToolSchema,
    ToolSchemaRequest,
)
from local.runtime.participant import Kind, Participant, on
from local.tools.arguments import Arguments

CALLS_AT_ONCE = 8
CANCELLED_KEPT = 1024


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """A result with the addresses its text came from."""

    text: str
    sources: tuple[str, ...] = ()


class Tool(Participant):
    """A participant that the model can call.

    Write `async def run(self, …) -> str | ToolOutput`. The model is told the class docstring and a JSON Schema of
    `run`'s parameters; the text in `Annotated[str, "…"]` describes one. Arguments are validated before `run` sees
    them. Raise `ToolError` for what the model should read; anything else it reads as an internal error.
    The constructor raises `ConfigError` for a `run` that no schema can describe.
    """

    kind = Kind.TOOL
    effect: ClassVar[Literal["none", "read", "write"]] = "read"
    repeatable: ClassVar[bool] = True  # whether the same call may be made again in one turn
    timeout_seconds: float = 30.0
    run: Callable[..., Coroutine[Any, Any, str | ToolOutput]]

    def __init__(self, config: Settings) -> None:
        super().__init__(config)
        try:
            self._arguments = Arguments(self.run)
        except TypeError as error:
            raise ConfigError(f"the tool {self.name} cannot be offered: {error}") from None
        self._running: defaultdict[str, set[asyncio.Task[str | ToolOutput]]] = defaultdict(set)
        self._cancelled: deque[str] = deque(maxlen=CANCELLED_KEPT)

    def schema(self) -> ToolSchema:
        """What the model and the generator are told."""
        return ToolSchema(
            tool=self.name,
            description=inspect.cleandoc(type(self).__doc__ or self.name),
            parameters=self._arguments.schema,
            effect=self.effect,
            repeatable=self.repeatable,
            timeout_seconds=self.timeout_seconds,
        )

    def subject_of(self, message: type[Message]) -> str:
        """Requests for this tool alone."""
        return message.subject + self.name if message is ToolRequest else message.subject

    async def announce(self) -> None:
        """Publish the schema."""
        await self.bus.publish(self.schema())

    @on(ToolSchemaRequest)
    async def tell_schema(self, message: ToolSchemaRequest, envelope: Envelope) -> ToolSchema:
        """Somebody asks which tools there are."""
        return self.schema()

    @on(ToolRequest, concurrency=CALLS_AT_ONCE)
    async def call(self, request: ToolRequest, envelope: Envelope) -> ToolResult:
        """Run one call within the time limit; its failure is a result, too."""
        started = time.monotonic()
        try:
            output = await self._run_within_limit(request)
            return self._result(request, started, result=output.text, sources=output.sources)
        except ToolError as error:
            return self._result(request, started, error=ErrorInfo(kind=error.kind, message=str(error)))

    @on(QueryCancel)
    async def cancel(self, message: QueryCancel, envelope: Envelope) -> None:
        """Stop every call of a cancelled query, and begin none of those that still wait."""
        self._cancelled.append(message.query_id)
        for task in self._running.get(message.query_id, ()):
            task.cancel()

    def error_reply(self, message: Message, error: Exception) -> Message | None:
        """An exception that `run` did not expect, as a result the model can read."""
        if not isinstance(message, ToolRequest):
            return None
        info = ErrorInfo(kind="internal", message=f"{self.name} failed: {type(error).__name__}: {error}")
        return self._result(message, time.monotonic(), error=info)

    async def _run_within_limit(self, request: ToolRequest) -> ToolOutput:
        if request.query_id in self._cancelled:
            raise self._was_cancelled()
        try:
            arguments = self._arguments.validate(request.args)
        except ValueError as error:
            raise ToolError(f"{self.name}: bad arguments: {error}", kind="bad_arguments") from None
        task = asyncio.create_task(self._run(arguments), name=request.call_id)
        self._running[request.query_id].add(task)
        task.add_done_callback(lambda task: self._ended(request.query_id, task))
        try:
            done, _ = await asyncio.wait({task}, timeout=self.timeout_seconds)
        finally:
            task.cancel()
        if not done:
            raise ToolError(f"{self.name} did not finish within {self.timeout_seconds:g} s", kind="timeout")
        if task.cancelled():
            raise self._was_cancelled()
        output = task.result()
        if not isinstance(output, str | ToolOutput):
            raise TypeError(f"run returned {type(output).__name__}, expected str or ToolOutput")
        return ToolOutput(output) if isinstance(output, str) else output

    async def _run(self, arguments: Mapping[str, Any]) -> str | ToolOutput:
        try:
            return await self.run(**arguments)
        except (SystemExit, KeyboardInterrupt) as error:  # it would end this process and every other call in it
            raise RuntimeError(f"run ended with {error!r}") from error

    def _was_cancelled(self) -> ToolError:
        return ToolError(f"{self.name} was cancelled", kind="cancelled")

    def _ended(self, query_id: str, task: asyncio.Task[str | ToolOutput]) -> None:
        self._running[query_id].discard(task)
        if not self._running[query_id]:
            del self._running[query_id]
        if not task.cancelled():
            task.exception()  # counts as seen: after the time limit nobody asks for it

    def _result(self, request: ToolRequest, started: float, **outcome: Any) -> ToolResult:
        return ToolResult(
            query_id=request.query_id,
            call_id=request.call_id,
            tool=self.name,
            duration_ms=round((time.monotonic() - started) * 1000, 3),
            **outcome,
        )

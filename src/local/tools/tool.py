"""The base of every tool: a docstring, a signature and `run`; the rest is manners."""

from __future__ import annotations

import inspect
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import cache, partial
from pathlib import Path
from types import MethodType
from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from local.config import Settings
from local.errors import ConfigError, ToolError
from local.protocol.envelope import Envelope, Trace, session_of
from local.protocol.memory_messages import MemoryDeleted
from local.protocol.messages import (
    ErrorInfo,
    Message,
    QueryCancel,
    SessionDeleted,
    ToolRequest,
    ToolResult,
    ToolSchema,
    ToolSchemaRequest,
)
from local.protocol.safety import UNDECLARED_CATEGORY, UNDECLARED_SAFETY, Category, Safety
from local.runtime.error_place import explained
from local.runtime.participant import Handles, Kind, Participant, Publications, Resources, on
from local.secrets.secret_mask import secret_mask
from local.services.effect_store import EffectStore
from local.tools.arguments import Arguments
from local.tools.at_most_once import AtMostOnce
from local.tools.grant_guard import NOT_GRANTED, GrantGuard
from local.tools.running_calls import RunningCalls
from local.tools.thread_call import in_own_thread
from local.tools.tool_output import ToolOutput

__all__ = ["Tool", "ToolOutput"]

CALLS_AT_ONCE = 8
MAX_RESULT_CHARS = 100_000
MAX_ERROR_CHARS = 4000
_asked_by: ContextVar[Trace] = ContextVar("asked_by")  # of the call that this task runs
_request: ContextVar[ToolRequest] = ContextVar("request")


class ToolSettings(Settings):
    """The settings of a tool that has none of its own."""

    max_result_chars: int = Field(MAX_RESULT_CHARS, ge=1)


class Tool(Participant):
    """A participant that the model can call.

    Write `async def run(self, …) -> str | ToolOutput`; without `async` it runs in a thread of its own. Anything else
    that it returns is told as JSON, and of a text longer than `max_result_chars` the beginning. The model is told the
    class docstring and a JSON Schema of `run`'s parameters; the text in `Annotated[str, "…"]` describes one. Arguments
    are validated before `run` sees them. Raise `ToolError` for what the model should read; anything else it reads as an
    internal error with file and line.
    With `effect = "write"` a call runs at most once, whatever dies: it is on record before it begins, and one that was
    cut off is reported as `outcome_unknown`, never repeated.
    `safety` says whether a call needs the user's leave: "L0" for one that only reads, "L1" for one whose changes in
    the workspace can be undone; without a word it is "L2". The constructor raises `ConfigError` for a `run` that no
    schema can describe, or that yields, and for a tool with effects that says it only reads.
    """

    kind = Kind.TOOL
    publishes: ClassVar[Publications | None] = ()
    Config: ClassVar[type[Settings]] = ToolSettings
    effect: ClassVar[Literal["none", "read", "write"]] = "read"
    safety: ClassVar[Safety] = UNDECLARED_SAFETY
    category: ClassVar[Category] = UNDECLARED_CATEGORY
    repeatable: ClassVar[bool] = True  # whether the same call may be made again in one turn
    replaces: ClassVar[str] = ""  # the shell commands that it is to be used instead of, such as "cat, head, tail"
    trusted: ClassVar[bool] = False  # whether its results hold no stranger's words, such as those of a page or a mail
    timeout_seconds: float = 30.0
    rubric: ClassVar[str] = ""  # the one of critic.yaml that answers are graded by which used it
    max_result_chars: int = MAX_RESULT_CHARS
    run: Callable[..., Any]
    grants: GrantGuard | None = None  # without it, nothing runs that needs leave

    def __init__(self, config: Settings) -> None:
        super().__init__(config)
        try:
            self._arguments = self.arguments()
        except TypeError as error:
            raise ConfigError(f"the tool {self.name} cannot be offered: {error}") from None
        if self.effect == "write" and self.safety == "L0":
            raise ConfigError(f'the tool {self.name} changes something (effect "write"); safety "L0" only reads')
        if "max_result_chars" in config.model_fields_set:
            self.max_result_chars = getattr(config, "max_result_chars", self.max_result_chars)
        self._running = RunningCalls(self.name, has_effects=self.effect == "write")
        self._record_path: Path | None = None
        self._effects: AtMostOnce | None = None  # while it is open

    @classmethod
    def build(cls, config: Any, resources: Resources) -> Self:
        """Make one from its configuration; override to make the services that the constructor takes, and end with
        `return cls(…).with_record(resources)` if the tool has effects."""
        return cls(config).with_record(resources)

    def with_record(self, resources: Resources) -> Self:
        """Keep the record of effects, if the tool has any, in the data directory; returns the tool."""
        self._record_path = resources.data_dir / "effects" / f"{self.name}.db"
        return self

    def lent(self, resources: Resources) -> None:
        """Have calls that need leave checked with the gatekeeper's key, which lies in the data directory."""
        self.grants = GrantGuard(resources.data_dir)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Hold the record of effects; a tool that has any and overrides this enters `super().lifespan()`.

        Raises `ConfigError` for a tool with effects that was made without `with_record`, `StoreFailed`.
        """
        if self.effect != "write":
            yield
            return
        if self._record_path is None:
            raise ConfigError(
                f"the tool {self.name} has effects and no record of them: build it .with_record(resources)"
            )
        async with EffectStore(self._record_path) as store:
            self._effects = AtMostOnce(store)
            yield

    @classmethod
    @cache
    def arguments(cls) -> Arguments:
        """What `run` takes, worked out once: a process that has is a megabyte or three ahead of those forked from it.

        Raises `TypeError` for a `run` that no schema can describe.
        """
        if inspect.isasyncgenfunction(cls.run) or inspect.isgeneratorfunction(cls.run):
            raise TypeError(f"{cls.run.__qualname__} yields; expected it to return its result")
        return Arguments(MethodType(cls.run, cls))  # bound to anything: `self` is no argument

    def schema(self) -> ToolSchema:
        """What the model and the generator are told."""
        return ToolSchema(
            tool=self.name,
            description=inspect.cleandoc(type(self).__doc__ or self.name),
            parameters=self._arguments.schema,
            effect=self.effect,
            safety=self.safety,
            category=self.category,
            repeatable=self.repeatable,
            timeout_seconds=self.timeout_seconds,
            rubric=self.rubric,
            replaces=self.replaces,
            trusted=self.trusted,
        )

    def asked_by(self) -> Trace:
        """For `run`: whose session and whose user this call is for, and the trace of what it asks of others.

        Raises `LookupError` outside of a call.
        """
        return _asked_by.get()

    def request(self) -> ToolRequest:
        """For `run`: the request of this call. Raises `LookupError` outside of a call."""
        return _request.get()

    def asked_for(self) -> str:
        """For `run`: the id of the respondent that this call is for. Raises `LookupError` outside of a call."""
        return _request.get().respondent_id

    def stays_on_host(self) -> bool:
        """For `run`: whether a redirect to another host is to be refused."""
        return getattr(_request.get(None), "same_host", False)

    @classmethod
    def handlers(cls) -> Iterator[Handles]:
        """The handlers, with durable ones for deletions if the tool keeps a record."""
        yield from super().handlers()
        if cls.effect == "write":
            yield Handles(SessionDeleted, "forget_session", 1, durable=f"tool_{cls.name}")
            yield Handles(MemoryDeleted, "forget_query", 1, durable=f"tool_{cls.name}")

    @classmethod
    def subject_of(cls, message: type[Message]) -> str:
        """The subject of a message: of requests and results, those of this tool alone."""
        return message.subject + cls.name if message in (ToolRequest, ToolResult) else message.subject

    async def announce(self) -> None:
        """Publish the schema."""
        await self.bus.publish(self.schema())

    @on(ToolSchemaRequest)
    async def tell_schema(self, message: ToolSchemaRequest, envelope: Envelope) -> ToolSchema:
        """Somebody asks which tools there are."""
        return self.schema()

    @on(ToolRequest, concurrency=CALLS_AT_ONCE)
    async def call(self, request: ToolRequest, envelope: Envelope) -> ToolResult:
        """Run one call within the time limit; its failure is a result, too. A process that another one has replaced
        leaves what has effects to that, and says nothing."""
        started = time.monotonic()
        _asked_by.set(envelope.trace())
        _request.set(request)
        try:
            self._require_leave(request)
            arguments = self._valid_arguments(request)
            run = self._run_once if self.effect == "write" else self._run_within_limit
            return await run(request, arguments, self.timeout_seconds)
        except ToolError as error:
            return self._failure(request, started, error)

    async def forget_session(self, deleted: SessionDeleted, envelope: Envelope) -> None:
        """Nobody is to keep anything of a session: what its calls brought is not on record any more."""
        if self._effects is not None:
            await self._effects.store.forget_session(deleted.deleted_session_id)

    async def forget_query(self, deleted: MemoryDeleted, envelope: Envelope) -> None:
        """What the calls of one query brought is not on record any more."""
        if self._effects is not None:
            await self._effects.store.forget_query(deleted.query_id)

    @on(QueryCancel)
    async def cancel(self, message: QueryCancel, envelope: Envelope) -> None:
        """Stop every call of a cancelled query, and begin none of those that still wait."""
        self._running.cancel(message.query_id)

    def error_reply(self, message: Message, error: Exception) -> Message | None:
        """An exception that `run` did not expect, as a result the model can read."""
        return self._internal_error(message, error) if isinstance(message, ToolRequest) else None

    def _require_leave(self, request: ToolRequest) -> None:
        if self.safety == "L0":
            return
        if self.grants is None:
            raise ToolError(f"{self.name} was not run: it cannot tell who has leave here", kind=NOT_GRANTED)
        self.grants.require(request)

    def _valid_arguments(self, request: ToolRequest) -> dict[str, Any]:
        try:
            return self._arguments.validate(request.args)
        except ValueError as error:
            raise ToolError(f"{self.name}: bad arguments: {error}", kind="bad_arguments") from None

    async def _run_once(self, request: ToolRequest, arguments: Mapping[str, Any], seconds: float) -> ToolResult:
        if self._effects is None:
            raise ConfigError(f"{self.name} has no record of effects: its lifespan has to enter super().lifespan()")
        return await self._effects.run(
            request,
            session_of(self.asked_by(), request.query_id),
            partial(self._run_within_limit, request, arguments),
            lambda error: self._internal_error(request, error),
            seconds,
        )

    async def _run_within_limit(self, request: ToolRequest, arguments: Mapping[str, Any], seconds: float) -> ToolResult:
        started = time.monotonic()
        try:
            output = await self._output(request, arguments, seconds)
        except ToolError as error:
            return self._failure(request, started, error)
        return self._result(request, started, **output.fields())

    async def _output(self, request: ToolRequest, arguments: Mapping[str, Any], seconds: float) -> ToolOutput:
        output = (await self._running.output(request, self._run(arguments), seconds)).without_secrets()
        if len(output.text) <= self.max_result_chars:
            return output
        blobs = self.bus.blobs
        return await output.limited(blobs.put if blobs is not None else None, self.max_result_chars)

    async def _run(self, arguments: Mapping[str, Any]) -> ToolOutput:
        try:
            if inspect.iscoroutinefunction(self.run):
                return ToolOutput.of(await self.run(**arguments))
            returned = await in_own_thread(partial(self.run, **arguments), self.name)
            return ToolOutput.of(await returned if inspect.isawaitable(returned) else returned)
        except (SystemExit, KeyboardInterrupt) as error:  # it would end this process and every other call in it
            raise RuntimeError(f"run ended with {error!r}") from error

    def _internal_error(self, request: ToolRequest, error: Exception) -> ToolResult:
        failed = ToolError(f"{self.name} failed: {explained(error)}", kind="internal")
        return self._failure(request, time.monotonic(), failed)

    def _failure(self, request: ToolRequest, started: float, error: ToolError) -> ToolResult:
        info = ErrorInfo(kind=error.kind, message=secret_mask.text(str(error))[:MAX_ERROR_CHARS])
        return self._result(request, started, error=info, tainted=error.tainted)

    def _result(self, request: ToolRequest, started: float, **outcome: Any) -> ToolResult:
        return ToolResult(
            query_id=request.query_id,
            respondent_id=request.respondent_id,
            call_id=request.call_id,
            tool=self.name,
            duration_ms=round((time.monotonic() - started) * 1000, 3),
            **outcome,
        )

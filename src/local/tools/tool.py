"""The base of every tool: a docstring, a signature and `run`; the rest is manners."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from local.config import Settings
from local.errors import ToolError
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

CALLS_AT_ONCE = 8


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
    """

    kind = Kind.TOOL
    effect: ClassVar[Literal["none", "read", "write"]] = "read"
    repeatable: ClassVar[bool] = True  # whether the same call may be made again in one turn
    timeout_seconds: float = 30.0
    run: Callable[..., Coroutine[Any, Any, str | ToolOutput]]

    def __init__(self, config: Settings) -> None:
        super().__init__(config)
        self._arguments = arguments_model(self.run)
        self._running: defaultdict[str, set[asyncio.Task[str | ToolOutput]]] = defaultdict(set)

    def schema(self) -> ToolSchema:
        """What the model and the generator are told."""
        parameters = self._arguments.model_json_schema()
        return ToolSchema(
            tool=self.name,
            description=inspect.cleandoc(type(self).__doc__ or self.name),
            parameters=_without_titles(parameters),
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
            text, sources = (output.text, output.sources) if isinstance(output, ToolOutput) else (output, ())
            return self._result(request, started, result=text, sources=sources)
        except ToolError as error:
            return self._result(request, started, error=ErrorInfo(kind=error.kind, message=str(error)))

    @on(QueryCancel)
    async def cancel(self, message: QueryCancel, envelope: Envelope) -> None:
        """Stop every call of a cancelled query."""
        for task in self._running.get(message.query_id, ()):
            task.cancel()

    def error_reply(self, message: Message, error: Exception) -> Message | None:
        """An exception that `run` did not expect, as a result the model can read."""
        if not isinstance(message, ToolRequest):
            return None
        info = ErrorInfo(kind="internal", message=f"{self.name} failed: {type(error).__name__}: {error}")
        return self._result(message, time.monotonic(), error=info)

    async def _run_within_limit(self, request: ToolRequest) -> str | ToolOutput:
        arguments = self._validate(request.args)
        task = asyncio.create_task(self.run(**arguments), name=request.call_id)
        self._running[request.query_id].add(task)
        try:
            done, _ = await asyncio.wait({task}, timeout=self.timeout_seconds)
            if not done:
                raise ToolError(f"{self.name} did not finish within {self.timeout_seconds:g} s", kind="timeout")
            if task.cancelled():
                raise ToolError(f"{self.name} was cancelled", kind="cancelled")
            return task.result()
        finally:
            task.cancel()
            self._running[request.query_id].discard(task)
            if not self._running[request.query_id]:
                del self._running[request.query_id]

    def _validate(self, arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            valid = self._arguments.model_validate(arguments)
        except ValidationError as error:
            problems = "; ".join(
                f"{'.'.join(map(str, problem['loc'])) or 'arguments'}: {problem['msg']}" for problem in error.errors()
            )
            expected = ", ".join(self._arguments.model_fields) or "none"
            message = f"{self.name}: bad arguments: {problems}. Expected: {expected}."
            raise ToolError(message, kind="bad_arguments") from None
        return {name: getattr(valid, name) for name in type(valid).model_fields}

    def _result(self, request: ToolRequest, started: float, **outcome: Any) -> ToolResult:
        return ToolResult(
            query_id=request.query_id,
            call_id=request.call_id,
            tool=self.name,
            duration_ms=round((time.monotonic() - started) * 1000, 3),
            **outcome,
        )


def arguments_model(run: Any) -> type[BaseModel]:
    """A model of `run`'s parameters that refuses unknown ones. Raises `TypeError` for one without a type."""
    hints = get_type_hints(run, include_extras=True)
    fields: dict[str, Any] = {}
    for parameter in inspect.signature(run).parameters.values():
        if parameter.name not in hints:
            raise TypeError(f"parameter {parameter.name} of {run.__qualname__} has no type")
        hint = hints[parameter.name]
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[parameter.name] = (_described(hint), default)
    return create_model("Arguments", __config__=ConfigDict(extra="forbid"), **fields)


def _described(hint: Any) -> Any:
    if get_origin(hint) is not Annotated:
        return hint
    kind, *notes = get_args(hint)
    notes = [Field(description=note) if isinstance(note, str) else note for note in notes]
    return Annotated[(kind, *notes)]


def _without_titles(schema: Any) -> Any:
    """pydantic titles every field by its own name, which only costs the model tokens."""
    if isinstance(schema, dict):
        return {
            key: _without_titles(value)
            for key, value in schema.items()
            if not (key == "title" and isinstance(value, str))
        }
    return [_without_titles(item) for item in schema] if isinstance(schema, list) else schema

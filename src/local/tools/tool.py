"""The base class of every tool: a tool is a docstring, a signature and `run`."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
import uuid
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from types import MethodType
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic_core import PydanticSerializationError, to_json

from local.bus.elsewhere import RemoteClient, speaking_for
from local.bus.envelope import Envelope, Trace, session_of
from local.bus.message import ErrorInfo, KeptText, Message
from local.bus.messages import (
    QueryCancel,
    RecallScore,
    SessionDeleted,
    ToolBegins,
    ToolRequest,
    ToolResult,
    ToolSchema,
    ToolSchemaRequest,
)
from local.bus.security import Declaration
from local.bus.vocabulary import UNDECLARED_CATEGORY, UNDECLARED_SAFETY, Category, Safety
from local.core import failpoints
from local.core.config import Settings
from local.core.errors import BlobNotStored, ConfigError, ToolError
from local.core.secrets import secret_mask
from local.memory.messages import OWNER, MemoryDeleted
from local.runtime.participant import Handles, Kind, Participant, Publications, Resources, declaration_of, on
from local.runtime.runner import explained
from local.tools.effects import AtMostOnce, EffectStore, key_of, outcome_unknown
from local.tools.grants import NOT_GRANTED, GrantGuard

# The parameters of a tool's `run`: the JSON Schema for the model, and the validation of its arguments.

_SINGLE = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Arguments:
    """The parameters of a bound method. `schema` is their JSON Schema, an object that allows no others.

    Each needs a type; the text in `Annotated[str, "…"]` describes it. Raises `TypeError` for a signature without.
    """

    def __init__(self, run: Callable[..., Any]) -> None:
        hints = get_type_hints(run, include_extras=True)
        fields: dict[str, Any] = {}
        for name, parameter in inspect.signature(run).parameters.items():
            if name not in hints or parameter.kind not in _SINGLE:
                raise TypeError(f"parameter {parameter} of {run.__qualname__}: expected a name and a type, name: type")
            default = ... if parameter.default is parameter.empty else parameter.default
            # The alias is the name: pydantic itself has no use for fields called copy, json or _x.
            fields[f"argument_{name}"] = (Annotated[_described(hints[name]), Field(alias=name)], default)
        self._fields = {f"argument_{name}": name for name in inspect.signature(run).parameters}
        self._model: type[BaseModel] = create_model("Arguments", __config__=ConfigDict(extra="forbid"), **fields)
        self.schema: dict[str, Any] = _without_titles(self._model.model_json_schema())

    def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments to call `run` with, typed and with the defaults. Raises `ValueError` that a model can read."""
        try:
            valid = self._model.model_validate(arguments)
        except ValidationError as error:
            problems = "; ".join(
                f"{'.'.join(map(str, problem['loc'])) or 'arguments'}: {problem['msg']}" for problem in error.errors()
            )
            expected = ", ".join(self._fields.values()) or "none"
            raise ValueError(f"{problems}. Expected: {expected}.") from None
        return {name: getattr(valid, field) for field, name in self._fields.items()}


def _described(hint: Any) -> Any:
    if get_origin(hint) is not Annotated:
        return hint
    kind, *notes = get_args(hint)
    return Annotated[(kind, *(Field(description=note) if isinstance(note, str) else note for note in notes))]


def _without_titles(schema: Any) -> Any:
    """Return the schema without the titles that pydantic adds, which only cost the model tokens."""
    if isinstance(schema, dict):
        return {
            key: _without_titles(value)
            for key, value in schema.items()
            if not (key == "title" and isinstance(value, str))
        }
    return [_without_titles(item) for item in schema] if isinstance(schema, list) else schema


# The result of a tool's `run`, as text, cut to the limits of the model and the bus.

Keep = Callable[[bytes], str]  # stores something and returns its name, or raises `BlobNotStored`
MAX_SOURCES = 200
MAX_KEPT_BYTES = 512 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The result of a call: its text, the addresses the text came from, and those that it links to.

    `whole` is where the whole of a text is stored that was cut off, `recalled` how near the memories were that were
    looked at. `tainted` says that a trusted tool returns untrusted content this time, `folder` names the folder that
    the owner would have to trust for it not to be untrusted, `undoable` says that its changes can be undone. The last
    `tail` characters of a text that is cut off are shown, too."""

    text: str
    sources: tuple[str, ...] = ()
    whole: KeptText | None = None
    recalled: tuple[RecallScore, ...] = ()
    links: tuple[str, ...] = ()
    tainted: bool = False
    folder: str = ""
    undoable: bool = False
    tail: int = 0

    @classmethod
    def of(cls, value: object) -> ToolOutput:
        """Return the output for a return value of `run`: text unchanged, None as empty, anything else as JSON. Raises
        `ToolError` for a value that JSON cannot express.
        """
        if isinstance(value, ToolOutput):
            return value
        if isinstance(value, str):
            return cls(value)
        try:
            return cls("" if value is None else to_json(value).decode())
        except PydanticSerializationError:
            text = f"run returned {type(value).__name__}, expected text, ToolOutput or what JSON can say"
            raise ToolError(text, kind="internal") from None

    def without_secrets(self) -> ToolOutput:
        """Return the output that may be cut and stored: without the secrets of this process."""
        if not secret_mask.names:
            return self
        sources, links = (tuple(map(secret_mask.text, urls)) for urls in (self.sources, self.links))
        return replace(self, text=secret_mask.text(self.text), sources=sources, links=links)

    def fields(self) -> dict[str, Any]:
        """Return its fields of a `ToolResult`."""
        return {"result": self.text, "sources": self.sources[:MAX_SOURCES], "links": self.links[:MAX_SOURCES],
                "whole": self.whole, "recalled": self.recalled, "tainted": self.tainted,
                "folder": self.folder, "undoable": self.undoable}  # fmt: skip

    async def limited(self, keep: Keep | None, max_chars: int) -> ToolOutput:
        """`max_chars` characters of a text that has more, from its beginning and `tail` of them from its end; `keep`
        takes the whole."""
        head, total = max(0, max_chars - self.tail), len(self.text)
        note = f"\n\n[Cut off here: these are {head} of {total} characters. Ask for less, or for a part.]"
        if self.tail:
            note = f"\n\n[Left out here: {total - head - self.tail} of {total} characters.]\n\n"
            note += self.text[-self.tail :]
        return replace(self, text=self.text[:head] + note, whole=await self._kept(keep, head))

    async def _kept(self, keep: Keep | None, shown: int) -> KeptText | None:
        """Return where the whole text is stored; None if there is no room for it."""
        try:
            data = await asyncio.to_thread(self.text.encode, "utf-8", "replace")
            if keep is None or len(data) > MAX_KEPT_BYTES:
                return None
            name = await asyncio.to_thread(keep, data)
            return {"$blob": name, "size": len(data), "characters": len(self.text), "shown": shown}
        except BlobNotStored:
            return None


# The calls of one tool that run now: each ends within its time, or when its query is cancelled.

CANCELLED_KEPT = 1024


class RunningCalls:
    """The running calls of one tool. With `has_effects` the outcome of a call that was cut off is unknown."""

    def __init__(self, tool: str, *, has_effects: bool) -> None:
        self._tool, self._has_effects = tool, has_effects
        self._tasks: defaultdict[str, set[asyncio.Task[ToolOutput]]] = defaultdict(set)
        self._cancelled: deque[str] = deque(maxlen=CANCELLED_KEPT)

    def cancel(self, query_id: str) -> None:
        """Stop every call of a query, and begin none of the waiting ones."""
        self._cancelled.append(query_id)
        for task in self._tasks.get(query_id, ()):
            task.cancel()

    async def output(self, request: ToolRequest, run: Coroutine[Any, Any, ToolOutput], seconds: float) -> ToolOutput:
        """Return the result of `run` within so many seconds. Raises its errors, and `ToolError` for an interrupted one
        (timeout, cancelled, outcome_unknown).
        """
        if request.query_id in self._cancelled:
            run.close()
            raise ToolError(f"{self._tool} was cancelled", kind="cancelled")
        failpoints.reach("tool.before_run")
        task = asyncio.create_task(run, name=request.call_id)
        self._tasks[request.query_id].add(task)
        task.add_done_callback(lambda task: self._ended(request.query_id, task))
        try:
            done, _ = await asyncio.wait({task}, timeout=seconds)
        finally:
            task.cancel()
        failpoints.reach("tool.after_run")
        if not done:
            raise self._cut_off(f"{self._tool} did not finish within {seconds:g} s", "timeout")
        if task.cancelled():
            raise self._cut_off(f"{self._tool} was cancelled", "cancelled")
        return task.result()

    def _cut_off(self, why: str, kind: str) -> ToolError:
        return outcome_unknown(why) if self._has_effects else ToolError(why, kind=kind)

    def _ended(self, query_id: str, task: asyncio.Task[ToolOutput]) -> None:
        self._tasks[query_id].discard(task)
        if not self._tasks[query_id]:
            del self._tasks[query_id]
        if not task.cancelled():
            task.exception()  # mark it as retrieved: after the time limit nothing waits for it


# Calls a blocking function in a separate thread.

T = TypeVar("T")


async def in_own_thread(function: Callable[[], T], name: str) -> T:
    """Return the function's result or raise its error. After a cancellation nothing waits for it, not even the end of
    the process: blocked threads would exhaust a pool, and keep the process from ending.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()
    context = copy_context()

    def settle(result: T | None, error: BaseException | None) -> None:
        if outcome.done():
            return
        if error is not None:
            outcome.set_exception(error)
        else:
            outcome.set_result(result)  # type: ignore[arg-type]  # without an error it is the function's result

    def work() -> None:
        result: T | None = None
        error: BaseException | None = None
        try:
            result = context.run(function)
        except StopIteration as stopped:  # no future takes it
            error = RuntimeError(f"{function} raised {stopped!r}")
        except BaseException as raised:  # noqa: BLE001 - it is raised where the result is awaited
            error = raised
        with suppress(RuntimeError):  # the loop is closed: nothing waits any more
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=work, name=name, daemon=True).start()
    return await outcome


__all__ = ["Tool", "ToolOutput"]

CALLS_AT_ONCE = 8
_CALLS = uuid.UUID("0a5f0e0b-6a0e-4f07-9f0f-0b5a3a9d1c66")
_SCHEMAS = uuid.UUID("0d0c2f0e-4c0d-4b5e-9a6d-7a1f6b1f5a35")
MAX_RESULT_CHARS = 100_000
MAX_ERROR_CHARS = 4000
_asked_by: ContextVar[Trace] = ContextVar("asked_by")  # of the call that this task runs
_request: ContextVar[ToolRequest] = ContextVar("request")


class ToolSettings(Settings):
    """The settings of a tool without its own."""

    max_result_chars: int = Field(MAX_RESULT_CHARS, ge=1)


class Tool(Participant):
    """A participant that the model can call.

    Write `async def run(self, …) -> str | ToolOutput`; without `async` it runs in a separate thread. Any other return
    value is converted to JSON, and a text longer than `max_result_chars` is cut at its end. The model gets the class
    docstring and a JSON Schema of `run`'s parameters; the text in `Annotated[str, "…"]` describes one. Arguments are
    validated before `run` is called. Raise `ToolError` for an error that the model should read; any other becomes an
    internal error with file and line. With `effect = "write"` a call runs at most once, whatever dies: it is recorded
    before it begins, and an interrupted one is reported as `outcome_unknown`, never repeated. `safety` says whether a
    call needs the user's approval: "L0" for one that only reads, "L1" for one whose changes in the workspace can be
    undone; the default is "L2". The constructor raises `ConfigError` for a `run` that no schema can describe, or that
    yields, and for a tool with effects that is declared as only reading.
    """

    kind = Kind.TOOL
    publishes: ClassVar[Publications | None] = (ToolBegins,)
    Config: ClassVar[type[Settings]] = ToolSettings
    effect: ClassVar[Literal["none", "read", "write"]] = "read"
    safety: ClassVar[Safety] = UNDECLARED_SAFETY
    category: ClassVar[Category] = UNDECLARED_CATEGORY
    repeatable: ClassVar[bool] = True  # whether the same call may be made again in one turn
    replaces: ClassVar[str] = ""  # the shell commands that it is to be used instead of, such as "cat, head, tail"
    sends_out: ClassVar[bool] = False  # whether it sends its arguments to others, though it only reads
    trusted: ClassVar[bool] = False  # whether its results hold no untrusted content, such as that of a page or a mail
    users: tuple[str, ...] | None = None  # the users besides the owner that it serves; None: all
    timeout_seconds: float = 30.0
    rubric: ClassVar[str] = ""  # the one of critic.yaml that answers are graded by which used it
    max_result_chars: int = MAX_RESULT_CHARS
    run: Callable[..., Any]
    grants: GrantGuard | None = None  # without it, no call runs that needs approval

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
        self._is_replicated = False  # whether a call with effects has to be on record on other machines, too

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
        """Have calls that need approval checked with the gatekeeper's key, which is in the data directory, and by the
        gatekeeper's clock.
        """
        self.grants = GrantGuard(resources.data_dir, lambda: time.time() + resources.clock_ahead)
        self._is_replicated = resources.is_replicated

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
        """Return the parameters of `run`, computed once: a process that has done so needs a megabyte or three less in
        each fork of it.

        Raises `TypeError` for a `run` that no schema can describe.
        """
        if inspect.isasyncgenfunction(cls.run) or inspect.isgeneratorfunction(cls.run):
            raise TypeError(f"{cls.run.__qualname__} yields; expected it to return its result")
        return Arguments(MethodType(cls.run, cls))  # bound to anything: `self` is not a parameter

    def schema(self) -> ToolSchema:
        """Return the schema for the model and the generator."""
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
            sends_out=self.sends_out,
            users=self.users,
        )

    def asked_by(self) -> Trace:
        """For `run`: the trace of this call, with its session and user, for requests to others.

        Raises `LookupError` outside of a call.
        """
        return _asked_by.get()

    def request(self) -> ToolRequest:
        """For `run`: the request of this call. Raises `LookupError` outside of a call."""
        return _request.get()

    def asked_for(self) -> str:
        """For `run`: the id of the respondent that this call is for. Raises `LookupError` outside of a call."""
        return _request.get().respondent_id

    def require_owner(self) -> None:
        """For `run`: raise `ToolError` (not_yours) unless the caller is the owner of the workspace."""
        if self.asked_by().user_id not in (None, OWNER):
            raise ToolError("the workspace belongs to the owner of this LoCAL2, and to no other user", kind="not_yours")

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
        """Publish the schema. Its id is that of its text, so that the journal records each text once, however often and
        by however many processes it is published.
        """
        schema = self.schema()
        await self.bus.publish(schema, envelope_id=uuid.uuid5(_SCHEMAS, schema.model_dump_json()).hex)

    @on(ToolSchemaRequest)
    async def publish_schema(self, message: ToolSchemaRequest, envelope: Envelope) -> ToolSchema | None:
        """Publish the schema on request."""
        await self.announce()
        return None

    @on(ToolRequest, concurrency=CALLS_AT_ONCE)
    async def call(self, request: ToolRequest, envelope: Envelope) -> ToolResult:
        """Run one call within the time limit; its failure is a result, too. A process that was replaced leaves calls
        with effects to its successor, without a reply.
        """
        started = time.monotonic()
        _asked_by.set(envelope.trace())
        _request.set(request)
        try:
            if not self.schema().serves(envelope.user_id):
                raise ToolError(f"{self.name} belongs to the owner of this LoCAL2", kind="not_yours")
            self._require_grant(request)
            arguments = self._valid_arguments(request)
            run = self._run_once if self.effect == "write" else self._run_within_limit
            return await run(request, arguments, self.timeout_seconds)
        except ToolError as error:
            return self._failure(request, started, error)

    async def forget_session(self, deleted: SessionDeleted, envelope: Envelope) -> None:
        """Delete the recorded results of a session's calls."""
        if self._effects is not None:
            await self._effects.store.forget_session(deleted.deleted_session_id)

    async def forget_query(self, deleted: MemoryDeleted, envelope: Envelope) -> None:
        """Delete the recorded results of one query's calls."""
        if self._effects is not None:
            await self._effects.store.forget_query(deleted.query_id)

    @on(QueryCancel)
    async def cancel(self, message: QueryCancel, envelope: Envelope) -> None:
        """Stop every call of a cancelled query, and begin none of the waiting ones."""
        self._running.cancel(message.query_id)

    def error_reply(self, message: Message, error: Exception) -> Message | None:
        """An exception that `run` did not expect, as a result the model can read."""
        return self._internal_error(message, error) if isinstance(message, ToolRequest) else None

    def _require_grant(self, request: ToolRequest) -> None:
        if self.safety == "L0":
            return
        if self.grants is None:
            raise ToolError(f"{self.name} was not run: there is no key here to check its approval", kind=NOT_GRANTED)
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
            partial(self._announce_call, request) if self._is_replicated else None,
        )

    async def _announce_call(self, request: ToolRequest) -> None:
        """Have on record, on other machines, too, that a call begins."""
        begins = ToolBegins(
            query_id=request.query_id,
            respondent_id=request.respondent_id,
            call_id=request.call_id,
            tool=self.name,
            args=request.args,
        )
        envelope_id = uuid.uuid5(_CALLS, key_of(request)).hex
        await self.bus.publish(begins, self.asked_by(), envelope_id=envelope_id, seconds=self.timeout_seconds)

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
        return self._result(request, started, error=info, tainted=error.tainted, folder=error.folder)

    def _result(self, request: ToolRequest, started: float, **outcome: Any) -> ToolResult:
        return ToolResult(
            query_id=request.query_id,
            respondent_id=request.respondent_id,
            call_id=request.call_id,
            tool=self.name,
            duration_ms=round((time.monotonic() - started) * 1000, 3),
            **outcome,
        )


# A tool on another machine, as the settings permit it.


def tool_elsewhere(name: str, more: Iterable[str] = ()) -> RemoteClient:
    """Return what a tool of that name on another machine may publish and serve, with `more` subjects, and hears."""
    declaration = declaration_of(type(name, (Tool,), {"name": name, "effect": "write", "publishes": ()}))
    says = declaration.says | speaking_for(name) | frozenset(more)
    results = {subject for subject in says if subject.startswith(ToolResult.subject)}
    hears = frozenset(ToolRequest.subject + subject.removeprefix(ToolResult.subject) for subject in results)
    return RemoteClient(Declaration(says, declaration.serves), hears)

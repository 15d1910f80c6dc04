"""Asks participants over the bus on behalf of HTTP routes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, TypeVar

import anyio

from local.bus.bus import Bus
from local.bus.envelope import Trace, new_id
from local.bus.message import MAX_ARGUMENTS_DEPTH, ErrorInfo, Message, is_deeper
from local.bus.messages import (
    ChildStatus,
    ControlVerb,
    ParticipantRequest,
    ParticipantResult,
    QueryCancel,
    ToolResult,
    ToolSchema,
)
from local.bus.vocabulary import Category
from local.core.errors import LocalError, RequestTimeout
from local.mcp.messages import ClientToolRequest, ClientToolResult, ClientToolVerb

M = TypeVar("M", bound=Message)

UNSEEN_SECONDS = 1.5  # for one that is there all the same: its first status beat may be on its way
_MISSING = ("unknown_participant", "model_missing")


class ParticipantAway(LocalError):
    """The error for a request to a participant that is not there."""

    kind = "unavailable"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name} does not answer: it takes part if `{name}` is among the `participants` in system.yaml; if it is,"
            " it comes back, so ask again"
        )


class ParticipantRefused(LocalError):
    """The error for a request that a participant has refused; `kind` and text are the participant's."""

    def __init__(self, error: ErrorInfo) -> None:
        super().__init__(error.message)
        self.kind = "not_found" if error.kind in _MISSING else error.kind


class BusRequests:
    """The routes' access to participants. `expects(name)` says whether a participant is ready, or will be."""

    def __init__(self, bus: Bus, expects: Callable[[str], bool]) -> None:
        self._bus, self.expects = bus, expects

    async def ask(
        self, participant: str, request: Message, reply: type[M], *, user_id: str | None = None, seconds: float = 10.0
    ) -> M:
        """The participant's answer, which has a field `error`.

        Raises `ParticipantAway`, `ParticipantRefused`, and `RequestTimeout` for a participant that is expected and does
        not answer in time.
        """
        wait = seconds if self.expects(participant) else UNSEEN_SECONDS
        try:
            result = await self._bus.request(request, reply, wait, Trace(new_id(), user_id=user_id))
        except RequestTimeout:
            if self.expects(participant):
                raise
            raise ParticipantAway(participant) from None
        return accepted(result)


def accepted(result: M) -> M:
    """Return an answer that has a field `error`. Raises `ParticipantRefused` if that is set."""
    error: ErrorInfo | None = getattr(result, "error", None)
    if error is not None:
        raise ParticipantRefused(error)
    return result


# The tools as programs may call them by themselves: those that read in the workspace, and those that the owner
# lists; over the bus.

GENERATOR = "generator"
LIST_SECONDS = 5.0
CALL_SECONDS = 1800.0  # a person may have to answer, and a tool may take its time
READING: Final[frozenset[Category]] = frozenset({"read", "search", "git", "memory"})


class ClientTools:
    """The tools that programs may call, which the generator runs. `listed` are those that the owner allows beside the
    tools of level L0 that read in the workspace; None: no tool at all. With `asks` a person is asked to approve calls
    that need approval."""

    publishes = (ClientToolRequest, QueryCancel)

    def __init__(
        self, bus: Bus, expects: Callable[[str], bool], listed: Collection[str] | None = (), *, asks: bool = False
    ) -> None:
        self._bus, self._expects = bus, expects
        self._listed, self._asks = listed, asks

    async def offered(self) -> Mapping[str, ToolSchema]:
        """The tools that programs may call, by name."""
        if self._listed is None:
            return {}
        return {name: schema for name, schema in (await self.known()).items() if self._is_offered(schema)}

    async def known(self) -> Mapping[str, ToolSchema]:
        """All tools that models may call, by name."""
        return {schema.tool: schema for schema in (await self._ask("list", LIST_SECONDS, Trace(new_id()))).tools}

    async def call(self, tool: str, args: Mapping[str, Any], query_id: str, client: str) -> ToolResult:
        """Return the result of a call; when cancelled, it stops the call. The same `query_id` again is the same
        call.
        """
        if tool not in await self.offered():
            text = f"programs are not offered a tool {tool[:80]!r} here; `client_tools` in api.yaml lists more of them"
            raise ParticipantRefused(ErrorInfo(kind="not_found", message=text))
        if is_deeper(dict(args), MAX_ARGUMENTS_DEPTH):
            text = f"args: nested deeper than {MAX_ARGUMENTS_DEPTH} levels"
            raise ParticipantRefused(ErrorInfo(kind="invalid", message=text))
        told = {"query_id": query_id, "tool": tool, "args": dict(args), "client": client, "asks": self._asks}
        try:
            answer = await self._ask("call", CALL_SECONDS, Trace(query_id), **told)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self.cancel(query_id)
            raise
        assert answer.result is not None, "there is one or the other"
        return answer.result

    async def cancel(self, query_id: str) -> None:
        """Stop a call and its pending requests. Raises as `Bus.publish` does."""
        await self._bus.publish(QueryCancel(query_id=query_id), Trace(query_id))

    def _is_offered(self, schema: ToolSchema) -> bool:
        return schema.tool in (self._listed or ()) or (schema.safety == "L0" and schema.category in READING)

    async def _ask(self, verb: ClientToolVerb, seconds: float, trace: Trace, **fields: Any) -> ClientToolResult:
        request = ClientToolRequest(verb=verb, **fields)
        try:
            found = await self._bus.request(
                request, ClientToolResult, seconds if self._expects(GENERATOR) else UNSEEN_SECONDS, trace
            )
        except RequestTimeout:
            raise ParticipantAway(GENERATOR) from None
        return accepted(found)


# A frontend's requests about the system itself: starting, stopping and restarting participants, over the bus.

CONTROL_SECONDS = 120.0  # a child gets ten to stop, and five times twenty to start


class SystemControl:
    """The routes' access to the supervisor, which starts, stops and restarts participants and is not one itself."""

    publishes = (ParticipantRequest,)

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def participant(self, verb: ControlVerb, name: str) -> ChildStatus | None:
        """Start, stop or restart a participant; returns how it is when that is done. Raises `ParticipantRefused`,
        `RequestTimeout`."""
        request = ParticipantRequest(verb=verb, name=name)
        return accepted(await self._bus.request(request, ParticipantResult, CONTROL_SECONDS)).child

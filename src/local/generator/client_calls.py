"""Calls of tools that programs make by themselves: without a turn, a model of ours, or a word of the user's."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

from local.bus.bus import Bus
from local.bus.envelope import Trace
from local.bus.message import ErrorInfo
from local.bus.messages import Grant, ToolRequest, ToolResult, ToolSchema
from local.bus.vocabulary import NON_INTERACTIVE, Mode
from local.core.errors import RequestTimeout, ToolError
from local.generator.hooks import DENIED, HookOutcome, passed
from local.generator.permissions import PermissionClient
from local.generator.tool_calls import request_id
from local.hooks.messages import HookEvent, HookRequest, HookResult, HookSettings
from local.mcp.messages import ClientToolRequest
from local.permissions.messages import GrantRequest, PermissionDecision
from local.tools.arguments import argument_fault

KNOWN = 1024
WEB: Final = "It tells others on the web what is looked for, and nobody knows whose words that is."


class ClientCalls:
    """Makes the calls of programs as a model's calls are made: with hooks, approval and the tool's own check. It is
    unknown what a program has read, so it counts as tainted: where a person is asked, tools that are always allowed and
    tools that read on the web need approval, too.
    """

    def __init__(
        self,
        bus: Bus,
        offered: Callable[[], Mapping[str, ToolSchema]],
        gate: PermissionClient,
        seconds: float,
    ) -> None:
        """`seconds` is the time limit of a tool without its own."""
        self._bus, self._offered, self._gate, self._seconds = bus, offered, gate, seconds
        self._known: deque[str] = deque(maxlen=KNOWN)  # query_ids

    def knows(self, query_id: str) -> bool:
        """Whether this id belongs to a program's call, not to a query."""
        return query_id in self._known

    async def make(self, asked: ClientToolRequest, trace: Trace) -> ToolResult:
        """Make a call and return its result. Raises `ToolError` for a call that was not made, `RequestTimeout` for one
        that did not end.
        """
        schema = self._offered().get(asked.tool)
        if schema is None:
            raise ToolError(f"there is no tool {asked.tool[:80]!r} now", kind="unknown_tool")
        self._known.append(asked.query_id)
        call_id = f"{asked.query_id}:0:0"
        data = {"tool": asked.tool, "args": asked.args, "level": schema.safety, "tainted": True}
        hooked = await self._pass("before_tool", data, asked, trace)
        if hooked.denied:
            raise ToolError(f"{asked.tool} was not run: {hooked.denied}", kind=DENIED)
        args = dict(hooked.data["args"])
        grant = await self._approval(asked, schema, args, hooked.asks, trace)
        request = ToolRequest(
            query_id=asked.query_id, call_id=call_id, tool=asked.tool, args=args, same_host=True, tainted=True,
            grant=grant,
        )  # fmt: skip
        result = await self._result(request, schema, trace)
        return await self._after(asked, result, trace)

    async def _approval(
        self, asked: ClientToolRequest, schema: ToolSchema, args: dict[str, Any], must_ask: str, trace: Trace
    ) -> Grant | None:
        refusal = WEB if schema.category == "web" else ""
        if schema.safety == "L0" and not refusal and not must_ask and not self._gate.denies(asked.tool):
            return None
        if fault := argument_fault(asked.tool, schema.parameters, args):
            raise ToolError(fault, kind="bad_arguments")
        mode: Mode = "default" if asked.asks else NON_INTERACTIVE
        request = GrantRequest(
            query_id=asked.query_id, call_id=f"{asked.query_id}:0:0", tool=asked.tool, args=args, mode=mode,
            tainted=True, refusal=refusal, must_ask=must_ask, client=asked.client,
        )  # fmt: skip
        result = await self._gate.request(self._bus, request, trace)
        if result.decision is not PermissionDecision.ALLOW:
            raise ToolError(f"{asked.tool} was not run: {result.why}", kind=DENIED)
        return result.grant

    async def _result(self, request: ToolRequest, schema: ToolSchema, trace: Trace) -> ToolResult:
        seconds = 1.0 + (schema.timeout_seconds if "timeout_seconds" in schema.model_fields_set else self._seconds)
        envelope_id = request_id(request.call_id, request.respondent_id)
        try:
            result = await self._bus.request(request, ToolResult, seconds, trace, envelope_id=envelope_id)
        except RequestTimeout:
            raise ToolError(f"{request.tool} did not answer within {seconds:g} s", kind="timeout") from None
        if result.call_id != request.call_id:
            raise ToolError(f"{request.tool} has answered another call", kind="malformed")
        return result.model_copy(update={"tainted": result.tainted or not schema.trusted})

    async def _after(self, asked: ClientToolRequest, result: ToolResult, trace: Trace) -> ToolResult:
        """The result, perhaps as a hook has changed it, or none."""
        told = {"error": result.error.message} if result.error else {"result": result.result or ""}
        data = {"tool": asked.tool, "args": asked.args, **told}
        outcome = await self._pass("after_tool", data, asked, trace)
        if outcome.denied:
            error = ErrorInfo(kind=DENIED, message=f"the result of {asked.tool} is withheld: {outcome.denied}")
            nothing = {"result": None, "error": error, "whole": None, "sources": (), "links": (), "recalled": ()}
            return result.model_copy(update={**nothing, "tainted": result.tainted or outcome.tainted})
        if result.error is not None or outcome.data["result"] == (result.result or ""):
            return result
        changed = {"result": outcome.data["result"], "whole": None, "tainted": result.tainted or outcome.tainted}
        return result.model_copy(update=changed)

    async def _pass(
        self, event: HookEvent, data: Mapping[str, Any], asked: ClientToolRequest, trace: Trace
    ) -> HookOutcome:
        hooks = [hook for hook in self._gate.hooks if hook.is_for(event, asked.tool)]

        async def ask(hook: HookSettings, now: Mapping[str, Any]) -> HookResult:
            request = HookRequest(
                query_id=asked.query_id, hook=hook.name, event=event, call_id=f"{asked.query_id}:0:0", data=dict(now)
            )
            return await self._bus.request(request, HookResult, hook.wait_seconds, trace)

        return await passed(hooks, event, data, ask) if hooks else HookOutcome(data)

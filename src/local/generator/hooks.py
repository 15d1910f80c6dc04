"""The hooks of one turn: asked where they are for something, and nowhere else."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from local.bus.message import ErrorInfo
from local.bus.messages import ToolCallRecord, ToolSchema
from local.core.errors import LocalError
from local.generator.output import TurnOutput
from local.generator.steps import PlannedCall
from local.generator.taint_policy import TaintPolicy
from local.generator.turn import Turn, refused, settle_here, settle_tainted
from local.hooks.messages import HookEvent, HookRequest, HookResult, HookSettings
from local.models.chat import ToolCall

# The answers of hooks to one event, in order: what each may change, and the combined result.

log = logging.getLogger(__name__)

CHANGED: Mapping[str, str] = {"before_model": "tools", "before_tool": "args", "after_tool": "result"}  # by event
ASKING = ("before_tool",)  # the events at which a person can be asked
_TYPES: Mapping[str, type] = {"tools": list, "args": dict, "result": str}

Ask = Callable[[HookSettings, Mapping[str, Any]], Awaitable[HookResult]]


@dataclass(frozen=True, slots=True)
class HookOutcome:
    """The outcome of all hooks of one event: `data` with their changes; `denied` and `asks` are reasons, empty if it is
    neither. `tainted` means that content of an untrusted hook is in it.
    """

    data: Mapping[str, Any]
    denied: str = ""
    asks: str = ""
    tainted: bool = False


class HookFault(LocalError):
    """The error that a hook returned something that is not allowed at that event."""

    kind = "hook"


async def passed(hooks: Sequence[HookSettings], event: HookEvent, data: Mapping[str, Any], ask: Ask) -> HookOutcome:
    """Ask each hook in order, with the changes of those before it; the first that denies ends it. A hook that fails, is
    late or returns something not allowed denies if it fails closed, and is skipped if it fails open.
    """
    asks, tainted = "", False
    for hook in hooks:
        try:
            result = await ask(hook, data)
            data = _changed(event, data, result)
        except LocalError as error:
            log.warning("the hook %s failed at %s: %s", hook.name, event, error)
            if hook.on_failure == "closed":
                why = f"the hook {hook.name} could not say whether: {error}"
                return HookOutcome(data, denied=why, tainted=tainted or not hook.trusted)
            continue
        tainted = tainted or (result.decision != "proceed" and not hook.trusted)
        if result.decision == "deny":
            return HookOutcome(data, denied=f"the hook {hook.name} denies it{_because(result)}", tainted=tainted)
        if result.decision == "ask":
            asks = asks or f"The hook {hook.name} wants to have it decided{_because(result)}"
    return HookOutcome(data, asks=asks, tainted=tainted)


def _changed(event: HookEvent, data: Mapping[str, Any], result: HookResult) -> Mapping[str, Any]:
    """Raises `HookFault`."""
    if result.error is not None:
        raise HookFault(result.error.message)
    if result.decision == "ask" and event not in ASKING:
        raise HookFault(f"no person can be asked at {event}")
    if result.decision != "change":
        return data
    key = CHANGED.get(event)
    if key is None or result.data.keys() != {key} or not isinstance(result.data[key], _TYPES[key]):
        raise HookFault(f"at {event} it can change {f'{key} alone' if key else 'nothing'}, not {sorted(result.data)}")
    value = result.data[key]
    if key == "tools":
        value = [name for name in data["tools"] if name in value]  # fewer, and never others
    return {**data, key: value}


def _because(result: HookResult) -> str:
    return f": {result.why}" if result.why else ""


DENIED = "denied"


class HookDenied(LocalError):
    """The error that a hook has denied the turn."""

    kind = DENIED


class HookedCall(NamedTuple):
    """A call after its hooks. `record` is set if it is not made, `asks` is the reason to ask a person; `tainted` means
    that content of an untrusted hook is in one of them.
    """

    call: PlannedCall
    record: ToolCallRecord | None = None
    asks: str = ""
    tainted: bool = False


class TurnHooks:
    """The hooks around one turn. `hooks` are all that there are; a turn without any has no such object."""

    def __init__(self, hooks: Sequence[HookSettings], turn: Turn, output: TurnOutput) -> None:
        self._hooks, self._turn, self._output = hooks, turn, output

    async def begin(self, *, first: bool) -> None:
        """Before the turn, which is the `first` one of its session or not. Raises `HookDenied`."""
        data = {"query": self._turn.question.query}
        if first:
            await self._require("session_start", data)
        await self._require("before_turn", data)

    async def tools(self, offered: dict[str, ToolSchema]) -> dict[str, ToolSchema]:
        """Before a model call: the tools that the model is offered, or fewer. Raises `HookDenied`."""
        left = (await self._require("before_model", {"tools": list(offered)}))["tools"]
        return {name: schema for name, schema in offered.items() if name in left}

    async def after_model(self, calls: Sequence[ToolCall]) -> None:
        """After a model call, before anything that it wants is done. Raises `HookDenied`."""
        told = [{"tool": call.name, "args": dict(call.arguments)} for call in calls]
        await self._require("after_model", {"content": self._turn.content, "calls": told})

    async def before(self, call: PlannedCall, schema: ToolSchema, policy: TaintPolicy | None) -> HookedCall:
        """Run the hooks before a call. With changed arguments it is another call, which the rules check again; hooks
        cannot approve a call.
        """
        data = {"tool": call.tool, "args": call.args, "level": schema.safety, "tainted": policy is not None}
        outcome = await self._pass("before_tool", data, call)
        if outcome.denied:
            denied = refused(call, DENIED, f"{call.tool} was not run: {outcome.denied}")
            return HookedCall(call, denied, tainted=outcome.tainted)
        changed = call.with_args(outcome.data["args"])
        record = None
        if changed is not call:
            record = settle_here(changed, 0, {call.tool: schema}, ())
            if record is None and policy is not None:
                record = settle_tainted(changed, schema, policy)
            if record is None and policy is not None:
                changed = changed.with_args(policy.as_given(changed.tool, changed.args))
        return HookedCall(changed, record, outcome.asks, outcome.tainted)

    async def after(self, call: PlannedCall, record: ToolCallRecord) -> ToolCallRecord:
        """After a call: its record, perhaps with another result, or with none; with words of a hook that is not
        trusted it is tainted."""
        told = {"error": record.error.message} if record.error else {"result": record.result or ""}
        outcome = await self._pass("after_tool", {"tool": call.tool, "args": call.args, **told}, call)
        if outcome.denied:
            error = ErrorInfo(kind=DENIED, message=f"the result of {call.tool} is withheld: {outcome.denied}")
            nothing = {"result": None, "error": error, "whole": None, "sources": (), "links": (), "recalled": ()}
            return record.model_copy(update={**nothing, "tainted": record.tainted or outcome.tainted})
        if record.error is not None or outcome.data["result"] == (record.result or ""):
            return record
        changed = {"result": outcome.data["result"], "whole": None, "tainted": record.tainted or outcome.tainted}
        return record.model_copy(update=changed)

    async def _require(self, event: HookEvent, data: Mapping[str, Any]) -> Mapping[str, Any]:
        outcome = await self._pass(event, data)
        if outcome.denied:
            raise HookDenied(outcome.denied)
        return outcome.data

    async def _pass(self, event: HookEvent, data: Mapping[str, Any], call: PlannedCall | None = None) -> HookOutcome:
        hooks = [hook for hook in self._hooks if hook.is_for(event, call.tool if call else "")]
        question = self._turn.question

        async def ask(hook: HookSettings, now: Mapping[str, Any]) -> HookResult:
            request = HookRequest(
                query_id=question.query_id,
                respondent_id=question.respondent_id,
                hook=hook.name,
                event=event,
                call_id=call.call_id if call else "",
                data=dict(now),
            )
            result = await self._output.ask_hook(request, hook.wait_seconds)
            if result.hook != hook.name:
                raise HookFault(f"{result.hook} has answered for it")
            return result

        return await passed(hooks, event, data, ask) if hooks else HookOutcome(data)

"""What hooks say of one event, one after the other: what they may say then, and what is made of it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from local.config_hooks import HookEvent, HookSettings
from local.errors import LocalError
from local.protocol.hook_messages import HookResult

log = logging.getLogger(__name__)

CHANGED: Mapping[str, str] = {"before_model": "tools", "before_tool": "args", "after_tool": "result"}  # by event
ASKING = ("before_tool",)  # the events at which a person can be asked
_TYPES: Mapping[str, type] = {"tools": list, "args": dict, "result": str}

Ask = Callable[[HookSettings, Mapping[str, Any]], Awaitable[HookResult]]


@dataclass(frozen=True, slots=True)
class HookOutcome:
    """What has come of all hooks: `data` as they have left it; `denied` and `asks` say why, and are empty if not so."""

    data: Mapping[str, Any]
    denied: str = ""
    asks: str = ""


class HookFault(LocalError):
    """A hook has said what it cannot say then."""

    kind = "hook"


async def passed(hooks: Sequence[HookSettings], event: HookEvent, data: Mapping[str, Any], ask: Ask) -> HookOutcome:
    """Ask each in order, with what those before it have left; the first that denies ends it. A hook that fails, is late
    or says what it cannot say denies if it fails closed, and is passed over if it fails open."""
    asks = ""
    for hook in hooks:
        try:
            result = await ask(hook, data)
            data = _changed(event, data, result)
        except LocalError as error:
            log.warning("the hook %s failed at %s: %s", hook.name, event, error)
            if hook.on_failure == "closed":
                return HookOutcome(data, denied=f"the hook {hook.name} could not say whether: {error}")
            continue
        if result.decision == "deny":
            return HookOutcome(data, denied=f"the hook {hook.name} denies it{_because(result)}")
        if result.decision == "ask":
            asks = asks or f"The hook {hook.name} wants to have it decided{_because(result)}"
    return HookOutcome(data, asks=asks)


def _changed(event: HookEvent, data: Mapping[str, Any], result: HookResult) -> Mapping[str, Any]:
    """Raises `HookFault`."""
    if result.error is not None:
        raise HookFault(result.error.message)
    if result.decision == "ask" and event not in ASKING:
        raise HookFault(f"nobody can be asked at {event}")
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

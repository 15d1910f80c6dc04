"""What hooks are asked before and after what a turn does, and what they say."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from local.bus.message import Delivery, ErrorInfo, Message, RespondentMessage
from local.hooks.settings import HookEvent


class HookRequest(RespondentMessage):
    """A respondent, before or after something that a hook is for. `data` says what it is about: `query` of a turn and a
    session; `tools` before a model call, `content` and `calls` after one; `tool`, `args`, `level` and `tainted` of a
    tool call, and its `result` or `error` when it has ended."""

    subject = "hook.request."
    delivery = Delivery.RECORDED
    family_key = "hook"
    is_request = True
    answered_by = "hooks"
    hook: str
    event: HookEvent
    call_id: str = ""
    data: dict[str, Any]


class HookResult(Message):
    """A hook, to that: proceed; change, with the new `tools`, `args` or `result` in `data`; deny, or ask a person, and
    `why`. None of these approves anything: a call that was changed is judged again. `error` says why the hook could not
    decide."""

    subject = "hook.result."
    delivery = Delivery.RECORDED
    family_key = "hook"
    hook: str
    decision: Literal["proceed", "change", "deny", "ask"] = "proceed"
    why: str = Field("", max_length=1000)
    data: dict[str, Any] = Field({})
    error: ErrorInfo | None = None

"""What hooks are asked before and after what a turn does, and what they say."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from local.bus.message import Delivery, ErrorInfo, Message, RespondentMessage
from local.hooks.settings import HookEvent


class HookRequest(RespondentMessage):
    """A respondent, before or after something that a hook is for. `data` is what it is about: `query` of a turn and a
    session; `tools` of a model call that comes, `content` and `calls` of one that has ended; `tool`, `args`, `level`
    and `tainted` of a call, and its `result` or `error` when it has ended."""

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
    """A hook, to that: proceed; change, with what is another one in `data`: `tools`, `args` or `result`; deny, or ask a
    person, and `why`. Nothing of it gives leave: a call that was changed is judged as what it is now. `error` says
    why it could not say anything."""

    subject = "hook.result."
    delivery = Delivery.RECORDED
    family_key = "hook"
    hook: str
    decision: Literal["proceed", "change", "deny", "ask"] = "proceed"
    why: str = Field("", max_length=1000)
    data: dict[str, Any] = Field({})
    error: ErrorInfo | None = None

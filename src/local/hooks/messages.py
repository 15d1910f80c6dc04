"""The requests to hooks before and after the actions of a turn, and their answers."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from local.bus.message import Delivery, ErrorInfo, Message, RespondentMessage
from local.core.config import Settings

HookEvent = Literal[
    "session_start", "before_turn", "before_model", "after_model", "before_tool", "after_tool", "after_turn",
    "session_end",
]  # fmt: skip
TOLD_ONLY = ("after_turn", "session_end")  # events at which no answer is waited for
COMMAND_SLACK = 3.0  # seconds, to start it and to end it
Text = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00]*$")]


class HookSettings(Settings):
    """One hook: requested under its `name` on the bus; its `command`, if there is one, is run in the sandbox to answer.
    Its output counts as untrusted content, because it may repeat its input, unless it is `trusted`.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9_-]{1,40}$")]
    events: Annotated[tuple[HookEvent, ...], Field(min_length=1)]
    tools: tuple[str, ...] = ()
    command: tuple[Text, ...] = ()
    script: str = Field("", pattern=r"^[A-Za-z0-9._-]*$")
    seconds: float = Field(5, gt=0, le=60)
    on_failure: Literal["open", "closed"] = "closed"
    trusted: bool = False

    @model_validator(mode="after")
    def _makes_sense(self) -> HookSettings:
        if self.script and len(self.command) != 1:
            raise ValueError('script needs the program that reads it as the command, as in command: ["python3"]')
        if not self.command and set(self.events) & set(TOLD_ONLY):
            raise ValueError(
                f"{' and '.join(TOLD_ONLY)} are for commands; a participant subscribes to these messages itself"
            )
        return self

    @property
    def wait_seconds(self) -> float:
        """Return how long an answer is waited for: a command's own limit comes first."""
        return self.seconds + (COMMAND_SLACK if self.command else 0)

    def is_for(self, event: HookEvent, tool: str = "") -> bool:
        """Whether the hook is asked at an event; of calls, about this tool."""
        return event in self.events and (not tool or not self.tools or tool in self.tools)


class HookRequest(RespondentMessage):
    """A respondent's request to a hook, before or after an action. `data` describes the action: `query` of a turn and
    a session; `tools` before a model call, `content` and `calls` after one; `tool`, `args`, `level` and `tainted` of a
    tool call, and its `result` or `error` when it has ended.
    """

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
    """A hook's answer to a `HookRequest`: proceed; change, with the new `tools`, `args` or `result` in `data`; deny,
    or ask a person, and `why`. None of these approves anything: a changed call is checked again. `error` is the reason
    why the hook could not decide.
    """

    subject = "hook.result."
    delivery = Delivery.RECORDED
    family_key = "hook"
    hook: str
    decision: Literal["proceed", "change", "deny", "ask"] = "proceed"
    why: str = Field("", max_length=1000)
    data: dict[str, Any] = Field({})
    error: ErrorInfo | None = None

"""What tools say and are asked, and how a call stands on record."""

from __future__ import annotations

from typing import Any, Literal

from local.protocol.grant import Grant
from local.protocol.kept_text import KeptText
from local.protocol.message import Data, ErrorInfo, Message, RespondentMessage
from local.protocol.recall_score import RecallScore
from local.protocol.safety import UNDECLARED_CATEGORY, UNDECLARED_SAFETY, Category, Safety


class ToolSchemaRequest(Message):
    """Whoever needs to know which tools there are; every tool answers with its schema."""

    subject = "tool.schema.request"


class ToolSchema(Message):
    """A tool, when it starts and when asked: what the model is told, and the manners of the tool."""

    subject = "tool.schema"
    tool: str
    description: str
    parameters: dict[str, Any]  # JSON Schema of the arguments
    effect: Literal["none", "read", "write"] = "read"
    safety: Safety = UNDECLARED_SAFETY
    category: Category = UNDECLARED_CATEGORY
    repeatable: bool = True
    timeout_seconds: float = 30.0
    rubric: str = ""  # the one of critic.yaml that answers are graded by that used it
    replaces: str = ""  # the shell commands that it is to be used instead of, such as "cat, head, tail"
    trusted: bool = False  # whether its results are nobody's words but its own, so that they taint no session


class ToolRequest(RespondentMessage):
    """The generator, when the model calls a tool. `call_id` is `query_id:step:index`, the same in every attempt."""

    subject = "tool.request."
    family_key = "tool"
    is_request = True
    call_id: str
    tool: str
    args: dict[str, Any]
    same_host: bool = False  # a redirect to another host is refused
    tainted: bool = False  # words of strangers are before the model that calls
    grant: Grant | None = None  # which a tool wants to see that may do more than read

    @property
    def whom(self) -> str:
        """The name of the tool."""
        return self.tool


class ToolResult(RespondentMessage):
    """A tool, when a call has settled: either `result` or `error`. `sources` are addresses the text came from, `links`
    those that it leads to; `tainted` says that there are words of strangers in what a trusted tool tells."""

    subject = "tool.result."
    family_key = "tool"
    call_id: str
    tool: str
    result: str | None = None
    error: ErrorInfo | None = None
    sources: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    tainted: bool = False
    undoable: bool = False  # what the call has changed can be undone, by its call_id
    whole: KeptText | None = None  # of a result that was cut off
    recalled: tuple[RecallScore, ...] = ()  # what a search of the memory has compared, told or not
    duration_ms: float = 0.0


class ToolCallRecord(Data):
    """One tool call as it stands in the answer's record. `made_by` is the respondent that made it, if another one;
    `tainted` that its result taints the session."""

    call_id: str
    tool: str
    args: dict[str, Any]
    result: str | None = None
    error: ErrorInfo | None = None
    sources: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    tainted: bool = False
    undoable: bool = False  # what the call has changed can be undone, by its call_id
    whole: KeptText | None = None  # of a result that was cut off
    recalled: tuple[RecallScore, ...] = ()  # what a search of the memory has compared, told or not
    duration_ms: float = 0.0
    made_by: str = ""

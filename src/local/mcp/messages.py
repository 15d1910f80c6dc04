"""The messages about tools that programs call by themselves, through a frontend and not in a turn."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from local.bus.message import Delivery, ErrorInfo, Message
from local.bus.messages import ToolResult, ToolSchema

ClientToolVerb = Literal["list", "call"]


class ClientToolRequest(Message):
    """A frontend's request for a program: list the tools, or call one (`tool`, `args`) under an id that is not a
    query's. `client` is the program's name; `asks` says whether a person is asked for approvals, which are denied
    otherwise.
    """

    subject = "client.tool.request."
    delivery = Delivery.EPHEMERAL
    family_key = "verb"
    is_request = True
    answered_by = "generator"
    verb: ClientToolVerb
    query_id: str = ""
    tool: str = ""
    args: dict[str, Any] = Field({})
    client: str = ""
    asks: bool = False


class ClientToolResult(Message):
    """The generator's answer: the tools, or the result of the call, `tainted` if it may hold untrusted content."""

    subject = "client.tool.result."
    delivery = Delivery.EPHEMERAL
    family_key = "verb"
    verb: ClientToolVerb
    tools: tuple[ToolSchema, ...] = ()
    result: ToolResult | None = None
    error: ErrorInfo | None = None

"""What tools say of work that is under way."""

from __future__ import annotations

from typing import Literal

from local.protocol.message import Delivery, RespondentMessage


class ToolProgress(RespondentMessage):
    """A tool whose work shows while it is done, at most four times a second: what has come, from the byte `start` of
    its output on. Of more than 8 kB only the end is told; all of it is in the result."""

    subject = "tool.progress."
    family_key = "tool"
    delivery = Delivery.EPHEMERAL
    call_id: str
    tool: str
    start: int
    text: str


class ToolJob(RespondentMessage):
    """A tool, when work begins that goes on after its call has ended, and when it has ended: then with `outcome`, a
    sentence, and all of its output."""

    subject = "tool.job"
    call_id: str
    tool: str
    job: str
    state: Literal["running", "ended"]
    command: str
    outcome: str = ""
    output: str = ""

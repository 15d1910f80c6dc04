"""A tool that needs approval, and the decision of a person about its calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from agent_stage.frontend import SECONDS

from local.permissions.messages import ApprovalRequest, PermissionRequest, PermissionResult
from local.runtime.participant import Settingless
from local.tools.tool import Tool

MILK = {"path": "list.txt", "content": "milk"}


class PenTool(Tool):
    """Write a file."""

    name = "pen"
    effect = "write"
    safety = "L1"
    category = "write"
    trusted = True

    def __init__(self, folder: Path) -> None:
        super().__init__(Settingless())
        self._record_path = folder / "pen.db"
        self.written: list[str] = []

    async def run(self, path: str, content: str) -> str:
        self.written.append(content)
        return "Written."


async def decide(stage: Any, call_id: str, decision: str = "allow", **fields: Any) -> PermissionResult:
    """Decide about a call, as soon as a person is asked about it."""
    await stage.frontend.until(lambda: any(each.call_id == call_id for each in stage.frontend.of(ApprovalRequest)))
    told = {"verb": "decide", "call_id": call_id, "decision": decision, "by": "page", **fields}
    result: PermissionResult = await stage.frontend.bus.request(
        PermissionRequest.model_validate(told), PermissionResult, SECONDS
    )
    return result

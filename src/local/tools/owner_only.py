"""Who may work in the workspace: the owner, and no other user."""

from __future__ import annotations

from local.errors import ToolError
from local.protocol.envelope import Trace
from local.protocol.memory_messages import OWNER


def require_owner(trace: Trace) -> None:
    """Raises `ToolError` (not_yours) for a call of anybody but the owner."""
    if trace.user_id not in (None, OWNER):
        raise ToolError("the workspace belongs to the owner of this LoCAL2, and to no other user", kind="not_yours")

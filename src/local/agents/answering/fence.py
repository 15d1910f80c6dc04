"""What a second respondent may not do, and what it takes from the first one instead of having it done again."""

from __future__ import annotations

from collections.abc import Iterable

from local.agents.answering.call_rules import NOT_MADE, refused, under_id
from local.agents.answering.steps import PlannedCall, signature
from local.protocol.message import MAIN_RESPONDENT
from local.protocol.messages import ToolCallRecord, ToolSchema

FENCED = "is not run for the second respondent, because it changes something; go on without its result"


class Fence:
    """Settles calls without a tool. `made` are the calls of the first respondent, in order; what is taken from them is
    marked as theirs."""

    def __init__(self, made: Iterable[ToolCallRecord] = ()) -> None:
        self._made: dict[str, ToolCallRecord] = {}
        for record in made:
            if record.error is None or record.error.kind not in NOT_MADE:
                key = signature(record.tool, record.args)
                if key not in self._made or self._made[key].result is None:
                    self._made[key] = record

    def settle(self, call: PlannedCall, schema: ToolSchema) -> ToolCallRecord | None:
        """The record of a call that must not be made, or was made already; None for any other."""
        if schema.effect == "write":
            return refused(call, "fenced", f"{call.tool} {FENCED}")
        record = self._made.get(call.signature)
        return None if record is None else under_id(call, record).model_copy(update={"made_by": MAIN_RESPONDENT})

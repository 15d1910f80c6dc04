"""Which tools the model is told of now: those that there are, as far as its asker wants them, and the turn's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from local.agents.answering.own_schemas import SCHEMAS
from local.agents.answering.steps import READ_RESULT
from local.agents.answering.turn_limits import does_more_than_read
from local.protocol.answer_options import AnswerOptions
from local.protocol.messages import ToolCallRecord, ToolSchema
from local.protocol.turn_tools import CLARIFICATION, PLAN_STEP, PROPOSE_PLAN, TODO_LIST

_ACTING = frozenset({"write", "shell"})  # categories


def with_own(
    tools: Mapping[str, ToolSchema],
    records: Iterable[ToolCallRecord],
    options: AnswerOptions | None,
    *,
    asks_user: bool,
) -> dict[str, ToolSchema]:
    """The tools with those of the turn itself that are of use: after these calls, and where it `asks_user`."""
    records, own = list(records), list[str]()
    if asks_user:
        own += [CLARIFICATION, *([PROPOSE_PLAN] if does_more_than_read(tools.values()) else ())]
    if any(record.tool == PROPOSE_PLAN and record.result is not None for record in records):
        own.append(PLAN_STEP)
    if any(schema.category in _ACTING for schema in tools.values()):
        own.append(TODO_LIST)
    wanted = [name for name in own if options is None or options.offers(name)]
    read_on = [READ_RESULT] if any(record.whole for record in records) else []
    return {**tools, **{name: SCHEMAS[name] for name in (*wanted, *read_on)}}

"""The tool that a turn is itself: it reads on in those of the turn's results that were cut off."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from local.agents.answering.arguments import fault_in
from local.agents.answering.steps import READ_RESULT, short_id
from local.bus.blobs import BlobStore
from local.errors import LocalError, MalformedFrame, ToolError
from local.protocol.messages import ErrorInfo, ToolCallRecord, ToolRequest, ToolResult, ToolSchema

PART_CHARS = 8000


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")
    call_id: str = Field("", description="The call whose result was cut off, as its note names it; or the latest one")
    start: int = Field(ge=0, description="The character to begin at; 0 is the beginning")


SCHEMA = ToolSchema(
    tool=READ_RESULT,
    description="Read on in the result of a tool that was cut off because it is too long. It is read in parts.",
    parameters=_Arguments.model_json_schema(),
    effect="none",
    safety="L0",
    category="meta",
    repeatable=False,
    trusted=True,  # beyond what its result says: a part has the taint of the call that it is of
)


class ResultReader:
    """Reads in the results of one turn, and in no other's. `room(text)` is how many characters of a text like that the
    model can take at once. A part is as tainted as the call that brought it, and has its sources, so that it is
    forgotten with them."""

    def __init__(
        self,
        cut: Sequence[ToolCallRecord],
        blobs: BlobStore | None,
        room: Callable[[str], int] = lambda text: PART_CHARS,
    ) -> None:
        self._cut, self._blobs, self._room = cut, blobs, room

    async def answer(self, request: ToolRequest) -> ToolResult:
        """What the tool answers; its failure is a result, too."""
        named = request.model_dump(include={"query_id", "respondent_id", "call_id", "tool"})
        try:
            arguments = _valid(request.args)
            record = self._record(arguments.call_id)
            text = await self._part(record, arguments.start)
        except LocalError as error:
            return ToolResult(**named, error=ErrorInfo.of(error))
        return ToolResult(**named, result=text, sources=record.sources, links=record.links, tainted=record.tainted)

    def _record(self, call_id: str) -> ToolCallRecord:
        for record in reversed(self._cut):
            if call_id in ("", record.call_id, short_id(record.call_id)):
                return record
        if not self._cut:
            raise ToolError(f"{READ_RESULT}: no result of this turn was cut off", kind="unknown_call")
        known = ", ".join(short_id(record.call_id) for record in self._cut)
        raise ToolError(
            f"{READ_RESULT}: no result of a call {call_id!r} was cut off; of these: {known}", kind="unknown_call"
        )

    async def _part(self, record: ToolCallRecord, start: int) -> str:
        whole = record.whole or {}
        total = int(whole.get("characters", 0))
        if start >= total:
            raise ToolError(
                f"{READ_RESULT}: start is {start}, and the result has {total} characters", kind="bad_arguments"
            )
        if self._blobs is None:
            raise ToolError(f"{READ_RESULT}: the rest of the result is not kept", kind="not_kept")
        try:
            text = await asyncio.to_thread(self._blobs.text, str(whole["$blob"]), start, PART_CHARS)
        except MalformedFrame:
            raise ToolError(f"{READ_RESULT}: the rest of the result is not kept any more", kind="not_kept") from None
        text = text[: max(1, self._room(text))]
        end = start + len(text)
        more = f" To read on, call {READ_RESULT} with start={end}." if end < total else ""
        return f"{text}\n\n[Characters {start} to {end} of {total}.{more}]"


def _valid(args: dict[str, Any]) -> _Arguments:
    if fault := fault_in(READ_RESULT, _Arguments, args):
        raise ToolError(fault, kind="bad_arguments")
    return _Arguments.model_validate(args)

"""The tools as programs may call them by themselves: those that read in the workspace, and those that the owner lists;
over the bus."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import anyio

from local.apps.participant_client import (
    UNSEEN_SECONDS,
    ParticipantAway,
    ParticipantClient,
    ParticipantRefused,
    accepted,
)
from local.bus.bus import Bus
from local.errors import RequestTimeout
from local.protocol.client_messages import ClientToolRequest, ClientToolResult, ClientToolVerb
from local.protocol.envelope import Trace, new_id
from local.protocol.message import MAX_ARGUMENTS_DEPTH, ErrorInfo, is_deeper
from local.protocol.messages import QueryCancel, ToolResult, ToolSchema
from local.protocol.safety import Category

LIST_SECONDS = 5.0
CALL_SECONDS = 1800.0  # a person may have to answer, and a tool may take its time
READING: Final[frozenset[Category]] = frozenset({"read", "search", "git", "memory"})


class ClientTools(ParticipantClient):
    """Asks the generator, who calls tools. `listed` are the owner's, beside which those of L0 are offered that read in
    the workspace; None: no tool at all. With `asks` a person is asked where a call takes leave."""

    participant = "generator"
    publishes = (ClientToolRequest, QueryCancel)

    def __init__(
        self, bus: Bus, expects: Callable[[str], bool], listed: Collection[str] | None = (), *, asks: bool = False
    ) -> None:
        super().__init__(bus, expects)
        self._listed, self._asks = listed, asks

    async def offered(self) -> Mapping[str, ToolSchema]:
        """The tools that programs may call, by name."""
        if self._listed is None:
            return {}
        found = (await self._ask("list", LIST_SECONDS, Trace(new_id()))).tools
        return {schema.tool: schema for schema in found if self._is_offered(schema)}

    async def call(self, tool: str, args: Mapping[str, Any], query_id: str, client: str) -> ToolResult:
        """How a call ended; cancelled, it has it stopped. The same `query_id` again is the same call."""
        if tool not in await self.offered():
            text = f"programs are not offered a tool {tool[:80]!r} here; `client_tools` in api.yaml lists more of them"
            raise ParticipantRefused(ErrorInfo(kind="not_found", message=text))
        if is_deeper(dict(args), MAX_ARGUMENTS_DEPTH):
            text = f"args: nested deeper than {MAX_ARGUMENTS_DEPTH} levels"
            raise ParticipantRefused(ErrorInfo(kind="invalid", message=text))
        told = {"query_id": query_id, "tool": tool, "args": dict(args), "client": client, "asks": self._asks}
        try:
            answer = await self._ask("call", CALL_SECONDS, Trace(query_id), **told)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self.cancel(query_id)
            raise
        assert answer.result is not None, "there is one or the other"
        return answer.result

    async def cancel(self, query_id: str) -> None:
        """Stop a call, and what it waits for. Raises as `Bus.publish` does."""
        await self._bus.publish(QueryCancel(query_id=query_id), Trace(query_id))

    def _is_offered(self, schema: ToolSchema) -> bool:
        return schema.tool in (self._listed or ()) or (schema.safety == "L0" and schema.category in READING)

    async def _ask(self, verb: ClientToolVerb, seconds: float, trace: Trace, **fields: Any) -> ClientToolResult:
        request = ClientToolRequest(verb=verb, **fields)
        try:
            found = await self._bus.request(
                request, ClientToolResult, seconds if self.is_expected else UNSEEN_SECONDS, trace
            )
        except RequestTimeout:
            raise ParticipantAway(self.participant) from None
        return accepted(found)

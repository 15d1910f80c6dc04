"""A running system as other programs' models see it: tools of the Model Context Protocol."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import BaseModel, Field

from local.apps.mcp_client import MCPClient
from local.apps.mcp_tool_server import MCPToolServer
from local.errors import LocalError
from local.protocol.envelope import new_id
from local.protocol.safety import NOBODY_THERE

PART_CHARACTERS = 40_000
LISTED = 20
INSTRUCTIONS = (
    "LoCAL2 is an assistant on this machine with a memory of its own. Ask it, search what its user has told it, and"
    " read its conversations. What it remembers is private to its user. Beside that there are tools for the workspace,"
    " which its user may have to allow."
)

Json = dict[str, Any]
Request = Context[Any, Any]
Conversation = Annotated[str, Field(description="The id of a conversation", min_length=1, max_length=128)]


class Answered(BaseModel):
    """What came of a question; `status` is answered or cancelled, `tools` are those that it has used."""

    answer: str
    conversation: str
    status: str
    tools: list[str]
    degraded: list[str]


class Recalled(BaseModel):
    """A remembered exchange; `asked_at` is a date and time in UTC."""

    question: str
    answer: str
    conversation: str
    asked_at: str
    relevance: float


class Listed(BaseModel):
    """A conversation in a list; `updated_at` is a date and time in UTC."""

    conversation: str
    title: str
    updated_at: str


class ConversationPart(BaseModel):
    """A part of a conversation as Markdown; it goes on at character `next`, which is null if this is its end."""

    text: str
    characters: int
    next: int | None


class MCPDoor:
    """Makes the server. `client_for` gives the system as it is asked for whoever has sent a request."""

    def __init__(self, client_for: Callable[[Request], MCPClient]) -> None:
        self._client_for = client_for

    def server(self) -> MCPServer:
        """With its tools, ready to be served."""
        server = MCPToolServer(INSTRUCTIONS, self._client_for)
        reads = ToolAnnotations(read_only_hint=True)
        for tool, hints in (
            (self.ask, ToolAnnotations(open_world_hint=True)),
            (self.search_memory, reads), (self.list_conversations, reads), (self.read_conversation, reads),
        ):  # fmt: skip
            server.add_tool(tool, description=inspect.getdoc(tool), annotations=hints)
        return server

    async def ask(
        self,
        question: Annotated[str, Field(description="In words, as a person would ask", min_length=1)],
        context: Request,
        conversation: Annotated[str, Field(description="Ask in this one; without it in one of its own")] = "",
    ) -> Answered:
        """Ask LoCAL2, which searches its memory, files and the web by itself, and wait for its whole answer. What would
        need its user's leave is denied."""
        body = {"query": question, "query_id": new_id(), "mode": NOBODY_THERE}

        async def told(heard: float, where: str) -> None:
            await context.report_progress(heard, None, where)

        with _reporting():
            asked = {**body, "session_id": conversation} if conversation else body
            return _answered(await self._client_for(context).ask(asked, told))

    async def search_memory(
        self,
        query: Annotated[str, Field(description="What to look for, in words", min_length=1)],
        context: Request,
        limit: Annotated[int, Field(description="How many at most", ge=1, le=100)] = 10,
    ) -> list[Recalled]:
        """Search what LoCAL2's user and LoCAL2 have said to each other, the best first."""
        with _reporting():
            found = await self._client_for(context).get("/memory", {"query": query, "limit": limit})
        return [
            Recalled(
                question=hit["query"], answer=hit["answer"], conversation=hit["session_id"] or "",
                asked_at=_date(hit["asked_at"]), relevance=hit["relevance"],
            )
            for hit in found["hits"]
        ]  # fmt: skip

    async def list_conversations(
        self,
        context: Request,
        words: Annotated[str, Field(description="Only those in which all of these words are", max_length=500)] = "",
        limit: Annotated[int, Field(description="How many at most", ge=1, le=1000)] = LISTED,
    ) -> list[Listed]:
        """List the conversations, the pinned ones and then the latest first."""
        with _reporting():
            found = await self._client_for(context).get("/sessions", {"query": words, "limit": limit})
        return [
            Listed(conversation=each["session_id"], title=each["title"] or "", updated_at=_date(each["updated_at"]))
            for each in found["sessions"]
        ]

    async def read_conversation(
        self,
        conversation: Conversation,
        context: Request,
        start: Annotated[int, Field(description="The character to begin at", ge=0)] = 0,
    ) -> ConversationPart:
        """Read a conversation, of a long one a part."""
        with _reporting():
            whole = await self._client_for(context).export(conversation)
        end = start + PART_CHARACTERS
        return ConversationPart(text=whole[start:end], characters=len(whole), next=end if end < len(whole) else None)


def _answered(said: Json) -> Answered:
    if said["status"] == "failed":
        raise ToolError(said["error"]["message"])
    tools = [call["tool"] for call in said["tool_calls"]]
    return Answered(
        answer=said["answer"], conversation=said["session_id"], status=said["status"], tools=tools,
        degraded=said["degraded"],
    )  # fmt: skip


@contextmanager
def _reporting() -> Iterator[None]:
    """What the system says when it refuses is for the model to read."""
    try:
        yield
    except LocalError as error:
        raise ToolError(str(error)) from None


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")

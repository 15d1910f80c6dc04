"""Several tools in one process, with common resources."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, ClassVar, Self

from local.bus.envelope import Envelope
from local.bus.message import Message
from local.bus.messages import (
    QueryCancel,
    SessionDeleted,
    ToolBegins,
    ToolRequest,
    ToolResult,
    ToolSchema,
    ToolSchemaRequest,
)
from local.core.config import Settings
from local.memory.messages import MemoryDeleted
from local.runtime.participant import Handles, Kind, Participant, Publications, Resources, on
from local.tools.tool import CALLS_AT_ONCE, Tool


class ToolGroup(Participant):
    """A participant that is several tools to the model. Subclasses name their classes in `tools` and make them in
    `make_tools`; each is a tool like any other, except that its process and its bus are the group's.
    """

    kind = Kind.TOOL
    publishes: ClassVar[Publications | None] = ()
    tools: ClassVar[tuple[type[Tool], ...]] = ()

    def __init_subclass__(cls, **named: Any) -> None:
        """The group's publications are those of its tools, and its own list."""
        super().__init_subclass__(**named)
        said = {each for tool in cls.tools for each in tool.publishes or ()}
        results = (ToolResult.subject + tool.name for tool in cls.tools)
        cls.publishes = (*(vars(cls).get("publishes") or ()), ToolSchema, ToolBegins, *said, *results)

    def __init__(self, config: Settings, tools: Sequence[Tool]) -> None:
        super().__init__(config)
        self._tools = {tool.name: tool for tool in tools}

    @classmethod
    def build(cls, config: Any, resources: Resources) -> Self:
        """With its tools, each with a record of its effects if it has any."""
        return cls(config, cls.make_tools(config, resources)).with_records(resources)

    @classmethod
    def make_tools(cls, config: Any, resources: Resources) -> Sequence[Tool]:
        """Return the tools, with their common resources."""
        return [tool(config) for tool in cls.tools]

    def with_records(self, resources: Resources) -> Self:
        """Keep the record of effects of each tool that has any; returns the group."""
        for tool in self._tools.values():
            tool.with_record(resources)
        return self

    def lent(self, resources: Resources) -> None:
        """Return the resources lent to each tool."""
        for tool in self._tools.values():
            tool.lent(resources)

    @classmethod
    def handlers(cls) -> Iterator[Handles]:
        """A handler for the requests of each tool; durable ones for deletions if any tool keeps a record."""
        yield from super().handlers()
        for tool in cls.tools:
            yield Handles(ToolRequest, "call", CALLS_AT_ONCE, subject=ToolRequest.subject + tool.name)
        if any(tool.effect == "write" for tool in cls.tools):
            yield Handles(SessionDeleted, "forget_session", 1, durable=f"tool_{cls.name}")
            yield Handles(MemoryDeleted, "forget_query", 1, durable=f"tool_{cls.name}")

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Hold the resources of each tool."""
        async with AsyncExitStack() as stack:
            for tool in self._tools.values():
                tool.bus = self.bus
                await stack.enter_async_context(tool.lifespan())
            yield

    def offered(self) -> Iterable[Tool]:
        """The tools that the model is to know of now; all of them unless overridden."""
        return self._tools.values()

    async def announce(self) -> None:
        """Publish the schema of each tool that is offered."""
        for tool in self.offered():
            await tool.announce()

    @on(ToolSchemaRequest)
    async def publish_schemas(self, message: ToolSchemaRequest, envelope: Envelope) -> None:
        """Publish the schemas of the tools on request."""
        await self.announce()

    async def call(self, request: ToolRequest, envelope: Envelope) -> Message | None:
        """Make one call of one of the tools. Raises `KeyError` for a tool that the subject does not name."""
        return await self._tools[request.tool].call(request, envelope)

    async def forget_session(self, deleted: SessionDeleted, envelope: Envelope) -> None:
        """Delete as each tool does."""
        for tool in self._tools.values():
            await tool.forget_session(deleted, envelope)

    async def forget_query(self, deleted: MemoryDeleted, envelope: Envelope) -> None:
        """Delete as each tool does."""
        for tool in self._tools.values():
            await tool.forget_query(deleted, envelope)

    @on(QueryCancel)
    async def cancel(self, message: QueryCancel, envelope: Envelope) -> None:
        """Cancel as each tool does."""
        for tool in self._tools.values():
            await tool.cancel(message, envelope)

    def error_reply(self, message: Message, error: Exception) -> Message | None:
        """Return the called tool's error reply."""
        tool = self._tools.get(getattr(message, "tool", ""))
        return tool.error_reply(message, error) if tool is not None else None

"""A tool of a server as the model calls it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar, cast

from local.config_mcp import MCPServerConfig
from local.tools.arguments import Arguments
from local.tools.mcp_servers.approved_tool import ApprovedTool
from local.tools.mcp_servers.mcp_connection import MCPConnection
from local.tools.tool import Tool
from local.tools.tool_output import ToolOutput


class ApprovedArguments(Arguments):
    """The schema that was approved. The server itself checks what it is given."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.schema = dict(schema)

    def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as they are."""
        return dict(arguments)


class MCPTool(Tool):
    """A tool of a server. Its results hold the words of strangers, and nobody knows what it does: so each call is
    made at most once, and asks first, unless the owner has set another level."""

    approved: ClassVar[ApprovedTool]

    def __init__(self, config: MCPServerConfig, connection: MCPConnection) -> None:
        super().__init__(config)
        self.timeout_seconds = config.timeout_seconds
        self._connection = connection

    @classmethod
    @cache
    def arguments(cls) -> Arguments:
        """What was approved."""
        return ApprovedArguments(cls.approved.parameters)

    @classmethod
    def made_of(cls, approved: ApprovedTool, config: MCPServerConfig) -> type[MCPTool]:
        """The class of one tool."""
        attributes = {
            "__doc__": approved.description, "name": approved.name, "approved": approved, "safety": config.safety,
            "category": config.category, "effect": "read" if config.safety == "L0" else "write",
        }  # fmt: skip
        return cast("type[MCPTool]", type(f"{cls.__name__}_{approved.name}", (cls,), attributes))

    async def run(self, /, **arguments: Any) -> ToolOutput:
        """Call it."""
        return await self._connection.call(self.approved, arguments)

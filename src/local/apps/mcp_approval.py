"""What a server says of its tools now, for an owner who is to approve it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from local.tools.mcp_servers.mcp_connection import MCPConnection


async def told_tools(connection: MCPConnection) -> list[dict[str, Any]]:
    """The tools as the server tells them; the server is ended then. Raises `ToolError`."""
    try:
        return await connection.tools()
    finally:
        await connection.close()

"""Tools of MCP servers, and LoCAL2 as an MCP server."""

from local.core.capability import Capability, Command, Section

CAPABILITY = Capability(
    messages=("local.mcp.messages",),
    routes=(
        "local.mcp.routes:add_mcp_routes",
        "local.mcp.routes:add_server_routes",
        "local.mcp.routes:add_skill_tool_routes",
        "local.mcp.routes:add_tool_routes",
    ),
    commands={
        "mcp": Command(
            "local.mcp.commands:mcp_app", Section.TOOLS, "Connect tool servers, and serve this system to MCP clients"
        ),
    },
)

"""Tools of MCP servers, and LoCAL2 as an MCP server."""

from local.core.capability import Capability, Command, OnlyInTerminal, OnPage, Section

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
            "local.mcp.commands:mcp_app",
            Section.TOOLS,
            "Connect tool servers, and serve this system to MCP clients",
            {
                "": OnlyInTerminal("An MCP client starts it."),
                "list": OnPage(
                    "tools/mcp", "the table *MCP servers*; press a server, then *Compare with what it offers now*"
                ),
                "add": OnPage("tools/mcp", "*Connect a server*"),
                "remove": OnPage("tools/mcp", "press a server, then *Remove this server*"),
                "login": OnPage("tools/mcp", "press a server, then *Log in*"),
                "logout": OnPage("tools/mcp", "press a server, then *Log out*"),
                "approve": OnPage("tools/mcp", "press a server, then *Review its tools* and *Approve*"),
            },
        ),
    },
)

"""Which tool calls need approval, who approves them, and the grants that tools check."""

from local.core.capability import Capability, Command, OnPage, Section

CAPABILITY = Capability(
    participants={"gatekeeper": "local.permissions.gatekeeper:GatekeeperService"},
    messages=("local.permissions.messages",),
    routes=("local.permissions.routes:add_routes",),
    requests=("local.permissions.messages:PermissionRequest",),
    commands={
        "approvals": Command(
            "local.permissions.commands:approvals_app",
            Section.TOOLS,
            "Allow or deny tool calls that wait for approval",
            {
                "list show": OnPage("tools/approvals", "*Waiting for you*"),
                "allow": OnPage("tools/approvals", "*Allow once* and *In this conversation*"),
                "deny": OnPage("tools/approvals", "*Deny*"),
                "forget": OnPage("tools/approvals", "*Take back*"),
            },
        ),
    },
)

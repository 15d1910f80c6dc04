"""Which tool calls need approval, who approves them, and the grants that tools check."""

from local.core.capability import Capability, Command, Section

CAPABILITY = Capability(
    participants={"gatekeeper": "local.permissions.gatekeeper:GatekeeperService"},
    messages=("local.permissions.messages",),
    routes=("local.permissions.routes:add_routes",),
    requests=("local.permissions.messages:PermissionRequest",),
    commands={
        "approvals": Command(
            "local.permissions.commands:approvals_app", Section.TOOLS, "Allow or deny tool calls that wait for approval"
        ),
    },
)

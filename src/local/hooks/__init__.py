"""Programs of the owner that are run before and after tool calls."""

from local.core.capability import Capability

CAPABILITY = Capability(
    participants={"hooks": "local.hooks.hooks:Hooks"},
    messages=("local.hooks.messages",),
    routes=("local.hooks.routes:add_routes",),
)

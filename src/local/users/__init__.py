"""Users besides the owner, what they may spend, and who they are."""

from local.core.capability import Capability

CAPABILITY = Capability(
    routes=("local.users.routes:add_account_routes", "local.users.routes:add_user_routes"),
    commands={"usage": "local.users.commands:usage", "user": "local.users.commands:user_app"},
)

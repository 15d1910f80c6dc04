"""The users besides the owner, and their budgets."""

from local.core.capability import Capability, Command, Section

CAPABILITY = Capability(
    routes=("local.users.routes:add_account_routes", "local.users.routes:add_user_routes"),
    commands={
        "usage": Command("local.users.commands:usage", Section.WATCH, "Show answers, tokens, time and money used"),
        "user": Command("local.users.commands:user_app", Section.SYSTEM, "Give other people access"),
    },
)

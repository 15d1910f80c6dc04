"""Users besides the owner, what they may spend, and who they are."""

from local.core.capability import Capability, Command, OnPage, Section

CAPABILITY = Capability(
    routes=("local.users.routes:add_account_routes", "local.users.routes:add_user_routes"),
    commands={
        "usage": Command(
            "local.users.commands:usage",
            Section.WATCH,
            "Show answers, tokens, time and money used",
            OnPage("system/usage", "*Show by* and *Of the last*; other users have theirs at `#/activity/usage`"),
        ),
        "user": Command(
            "local.users.commands:user_app",
            Section.SYSTEM,
            "Give other people access",
            {
                "add": OnPage("system/users", "*Invite*"),
                "list": OnPage("system/users", "the table *Users*"),
                "remove": OnPage("system/users", "*Remove* beside a user"),
            },
        ),
    },
)

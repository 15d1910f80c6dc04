"""What the owner tells the model: instructions, soul, profiles, and which folders are trusted."""

from local.core.capability import Capability, Command, Section

CAPABILITY = Capability(
    routes=("local.instructions.routes:add_routes", "local.instructions.profile_routes:add_routes"),
    commands={
        "profiles": Command(
            "local.instructions.commands:profile_app", Section.ASK, "Show the kinds of assistant that can answer"
        ),
        "soul": Command(
            "local.instructions.commands:soul_app",
            Section.MEMORY,
            "Show the assistant's character and its earlier versions",
        ),
        "trust": Command(
            "local.instructions.commands:trust", Section.TOOLS, "Trust a folder, so that `ask` and `chat` work in it"
        ),
    },
)

"""The owner's texts for the model: instructions, soul, profiles, and which folders are trusted."""

from local.core.capability import Capability, Command, OnPage, Section

CAPABILITY = Capability(
    routes=("local.instructions.routes:add_routes", "local.instructions.profile_routes:add_routes"),
    commands={
        "profiles": Command(
            "local.instructions.commands:profile_app",
            Section.ASK,
            "Show the kinds of assistant that can answer",
            {
                "list show": OnPage("tools/profiles", "the table, and *Its instructions* behind the name of a profile"),
            },
        ),
        "soul": Command(
            "local.instructions.commands:soul_app",
            Section.MEMORY,
            "Show the assistant's character and its earlier versions",
            {
                "show": OnPage("memory/soul", "the field *SOUL.md*"),
                "history": OnPage("memory/soul", "*Versions*"),
                "revert": OnPage("memory/soul", "*Restore* beside a version"),
                "proposal": OnPage("memory/soul", "*Apply this change* and *Discard*"),
            },
        ),
        "trust": Command(
            "local.instructions.commands:trust",
            Section.TOOLS,
            "Trust a folder, so that `ask` and `chat` work in it",
            OnPage("tools/folders", "*Show what it instructs*, then *Trust this folder*; *Trust no longer*"),
        ),
    },
)

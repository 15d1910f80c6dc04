"""Plays conversations against a running system and checks what happens."""

from local.core.capability import Capability, Command, OnlyInTerminal, Section

CAPABILITY = Capability(
    commands={
        "stories": Command(
            "local.stories.commands:stories",
            Section.SYSTEM,
            "Play the acceptance stories",
            OnlyInTerminal("For developers: acceptance tests, against a system of their own."),
        ),
    },
)

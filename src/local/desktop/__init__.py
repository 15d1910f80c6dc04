"""The desktop window: an instrument beside the work, straight on the bus. See README.md."""

from local.core.capability import Capability, Command, OnlyInTerminal, Section

CAPABILITY = Capability(
    commands={
        "desktop": Command(
            "local.desktop.commands:desktop",
            Section.WATCH,
            "Open the desktop window of the running system",
            OnlyInTerminal("It opens the desktop window."),
        ),
    },
)

"""Plays conversations against a running system and checks what happens."""

from local.core.capability import Capability

CAPABILITY = Capability(
    commands={"stories": "local.stories.commands:stories"},
)

"""Runs commands in the workspace."""

from local.core.capability import Capability

CAPABILITY = Capability(
    participants={"shell": "local.shell.shell:Shell"},
)

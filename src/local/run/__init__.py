"""Starts the system: which processes there are, their settings, backups, and the set-up of the environment."""

from local.core.capability import Capability

CAPABILITY = Capability(
    commands={
        "run": "local.run.commands:run",
        "model": "local.run.model_commands:model_app",
        "participant": "local.run.participant:participant",
        "backup": "local.run.commands:backup",
        "restore": "local.run.commands:restore",
        "rebuild": "local.run.commands:rebuild",
    },
)

"""The command line: the entry point, the chat in the terminal, and what commands share."""

from local.core.capability import Capability

CAPABILITY = Capability(
    commands={
        "ask": "local.cli.commands:ask_once",
        "chat": "local.cli.commands:chat",
        "repl": "local.cli.commands:chat",
        "trace": "local.cli.commands:trace",
        "status": "local.cli.client:status",
        "restart": "local.cli.client:restart",
        "secret": "local.cli.secrets:secret_app",
        "logs": "local.cli.logs:logs",
        "tap": "local.cli.tap_commands:tap_app",
        "doctor": "local.cli.doctor_command:doctor",
        "completion": "local.cli.main:completion",
    },
    hidden=("repl",),
)

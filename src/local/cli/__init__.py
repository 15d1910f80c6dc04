"""The command line: the entry point, the chat in the terminal, and the common parts of commands."""

from local.core.capability import Capability, Command, Section

CAPABILITY = Capability(
    commands={
        "ask": Command("local.cli.commands:ask_once", Section.ASK, "Ask one question and print the answer"),
        "chat": Command("local.cli.commands:chat", Section.ASK, "Talk in this terminal"),
        "open": Command("local.cli.client:open_page", Section.ASK, "Open the page in the browser, signed in"),
        "code": Command("local.cli.client:sign_in_code", Section.ASK, "Print a code to sign a browser in"),
        "trace": Command("local.cli.commands:trace", Section.WATCH, "Show where the time of a query went"),
        "status": Command("local.cli.client:status", Section.WATCH, "Show how the system and each participant are"),
        "restart": Command("local.cli.client:restart", Section.SYSTEM, "Start or restart one participant"),
        "secret": Command("local.cli.secrets:secret_app", Section.TOOLS, "Store keys and passwords that tools use"),
        "logs": Command("local.cli.logs:logs", Section.WATCH, "Show or follow the log"),
        "tap": Command("local.cli.tap_commands:tap_app", Section.WATCH, "Watch the messages on the bus"),
        "completion": Command("local.cli.main:completion", Section.SYSTEM, "Print the completion script for a shell"),
    },
    aliases={"repl": "chat"},
)

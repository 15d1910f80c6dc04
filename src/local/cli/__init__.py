"""The command line: the entry point, the chat in the terminal, and what commands share."""

from local.core.capability import Capability, Command, OnlyInTerminal, OnPage, Section

CAPABILITY = Capability(
    commands={
        "ask": Command(
            "local.cli.commands:ask_once",
            Section.ASK,
            "Ask one question and print the answer",
            OnPage("chat", "the field *Ask, or drop a file*"),
        ),
        "chat": Command(
            "local.cli.commands:chat",
            Section.ASK,
            "Talk in this terminal",
            OnPage("chat", "the field *Ask, or drop a file*"),
        ),
        "open": Command(
            "local.cli.client:open_page",
            Section.ASK,
            "Open the page in the browser, signed in",
            OnlyInTerminal("It opens the page."),
        ),
        "code": Command(
            "local.cli.client:sign_in_code",
            Section.ASK,
            "Print a code to sign a browser in",
            OnPage("settings", "*Sign in another browser*, *Sign out of all browsers*"),
        ),
        "browsers": Command(
            "local.cli.client:browsers_app",
            Section.SYSTEM,
            "List the signed-in browsers, and sign them out",
            {
                "list": OnPage("settings", "the table *Signed-in browsers*"),
                "sign-out": OnPage("settings", "*Sign it out* beside a browser"),
            },
        ),
        "trace": Command(
            "local.cli.commands:trace",
            Section.WATCH,
            "Show where the time of a query went",
            OnPage("chat", "*Why* under an answer, then *Time*"),
        ),
        "status": Command(
            "local.cli.client:status",
            Section.WATCH,
            "Show how the system and each participant are",
            OnPage("system/participants", "the table *Participants*"),
        ),
        "restart": Command(
            "local.cli.client:restart",
            Section.SYSTEM,
            "Start or restart one participant",
            OnPage("system/participants", "*Restart* and *Start* beside a participant"),
        ),
        "secret": Command(
            "local.cli.secrets:secret_app",
            Section.TOOLS,
            "Store keys and passwords that tools use",
            {
                "set": OnPage("settings/secrets", "*Store*"),
                "list": OnPage("settings/secrets", "the table *Secrets*"),
                "remove": OnPage("settings/secrets", "*Remove* beside a secret"),
            },
        ),
        "logs": Command(
            "local.cli.logs:logs",
            Section.WATCH,
            "Show or follow the log",
            OnPage("system/log", "*Level*, *Participant*, *Query* and *Follow*"),
        ),
        "tap": Command(
            "local.cli.tap_commands:tap_app",
            Section.WATCH,
            "Watch the messages on the bus",
            {
                "echo": OnPage("activity/bus", "the list *Messages on the bus*"),
                "list hz bw delay": OnPage("activity/subjects", "the columns *Rate*, *Payload*, *Size* and *Delay*"),
                "graph": OnPage("activity/subjects", "the columns *From* and *To*"),
                "info": OnPage(
                    "activity/subjects", "the columns *From* and *To*; [Messages](messages.md) has the fields"
                ),
                "pub": OnlyInTerminal("For developers. The page sends only what a route of the API accepts."),
            },
        ),
        "completion": Command(
            "local.cli.main:completion",
            Section.SYSTEM,
            "Print the completion script for a shell",
            OnlyInTerminal("It sets a shell up."),
        ),
    },
    aliases={"repl": "chat"},
)

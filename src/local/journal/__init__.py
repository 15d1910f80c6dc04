"""The journal: a record of every message, and durable delivery to named consumers."""

from local.core.capability import Capability, Command, OnlyInTerminal, OnPage, Section

CAPABILITY = Capability(
    messages=("local.journal.messages",),
    routes=("local.journal.routes:add_routes", "local.journal.question_routes:add_routes"),
    requests=("local.journal.messages:JournalDeadRead", "local.journal.messages:JournalRedeliver"),
    commands={
        "journal": Command(
            "local.journal.commands:journal_app",
            Section.WATCH,
            "Read, export and replay the recorded messages",
            {
                "list show": OnPage(
                    "activity/messages", "`session:` in *Filter* above the list; press a message to read all of it"
                ),
                "dead": OnPage("activity/dead", "the table *Dead letters*"),
                "redeliver": OnPage("activity/dead", "*Redeliver* beside a message"),
                "export": OnPage("activity/messages", "*Save as a file*, with what is chosen above the list"),
                "play": OnlyInTerminal("For developers: it publishes an export again, on a bus of its own."),
            },
        ),
    },
)

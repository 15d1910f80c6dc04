"""The journal: a record of every message, and durable delivery to named consumers."""

from local.core.capability import Capability, Command, Section

CAPABILITY = Capability(
    messages=("local.journal.messages",),
    routes=("local.journal.routes:add_routes", "local.journal.question_routes:add_routes"),
    requests=("local.journal.messages:JournalDeadRead", "local.journal.messages:JournalRedeliver"),
    commands={
        "journal": Command(
            "local.journal.commands:journal_app", Section.WATCH, "Read, export and replay the recorded messages"
        ),
    },
)

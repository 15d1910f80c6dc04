"""Files of the workspace: reading, editing, searching, undo and git."""

from local.core.capability import Capability, Command, OnPage, Section

CAPABILITY = Capability(
    participants={"files": "local.files.participant:FileTools"},
    messages=("local.files.messages",),
    routes=("local.files.routes:add_routes",),
    requests=("local.files.messages:ChangeRequest",),
    commands={
        "undo": Command(
            "local.files.commands:undo_app",
            Section.TOOLS,
            "Undo changes that tools made to files",
            {
                "list": OnPage("activity/changes", "the part *File changes*"),
                "show": OnPage("activity/changes", "*What changed*"),
                "call": OnPage("activity/changes", "*Undo* beside a call"),
                "turn": OnPage("activity/changes", "*Undo this question*"),
                "day": OnPage("activity/changes", "*Undo this day*"),
            },
        ),
    },
)

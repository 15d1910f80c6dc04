"""Files of the workspace: reading, editing, searching, undo and git."""

from local.core.capability import Capability, Command, Section

CAPABILITY = Capability(
    participants={"files": "local.files.participant:FileTools"},
    messages=("local.files.messages",),
    routes=("local.files.routes:add_routes",),
    requests=("local.files.messages:ChangeRequest",),
    commands={
        "undo": Command("local.files.commands:undo_app", Section.TOOLS, "Undo changes that tools made to files"),
    },
)

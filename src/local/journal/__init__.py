"""The journal: a record of every message, and durable delivery to named consumers."""

from local.core.capability import Capability

CAPABILITY = Capability(
    messages=("local.journal.messages",),
    routes=("local.journal.routes:add_routes",),
    commands={"journal": "local.journal.commands:journal_app"},
)

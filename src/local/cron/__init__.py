"""Jobs that ask a question at a time of the day."""

from local.core.capability import Capability, Command, Section

CAPABILITY = Capability(
    participants={"cron": "local.cron.tools:Cron"},
    messages=("local.cron.messages",),
    routes=("local.cron.routes:add_routes",),
    requests=("local.cron.messages:CronRequest",),
    commands={
        "cron": Command("local.cron.commands:cron_app", Section.AGENTS, "Add, pause and run scheduled questions"),
    },
)

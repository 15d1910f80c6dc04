"""Scheduled jobs: questions that are asked at set times. See README.md."""

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

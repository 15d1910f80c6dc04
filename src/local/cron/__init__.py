"""Scheduled jobs: questions that are asked at set times. See README.md."""

from local.core.capability import Capability

CAPABILITY = Capability(
    participants={"cron": "local.cron.tools:Cron"},
    messages=("local.cron.messages",),
    routes=("local.cron.routes:add_routes",),
    commands={"cron": "local.cron.commands:cron_app"},
)

"""Jobs that ask a question at a time of the day."""

from local.core.capability import Capability

CAPABILITY = Capability(
    participants={"cron": "local.cron.tools:Cron"},
    messages=("local.cron.messages",),
    routes=("local.cron.routes:add_routes",),
    commands={"cron": "local.cron.commands:cron_app"},
)

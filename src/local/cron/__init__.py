"""Scheduled jobs: questions that are asked at set times. See README.md."""

from local.core.capability import Capability, Command, OnPage, Section

CAPABILITY = Capability(
    participants={"cron": "local.cron.tools:Cron"},
    messages=("local.cron.messages",),
    routes=("local.cron.routes:add_routes",),
    requests=("local.cron.messages:CronRequest",),
    commands={
        "cron": Command(
            "local.cron.commands:cron_app",
            Section.AGENTS,
            "Add, pause and run scheduled questions",
            {
                "list": OnPage("schedules", "the table *Jobs*"),
                "add": OnPage("schedules", "*New schedule*"),
                "remove": OnPage("schedules", "*Remove* beside a job"),
                "pause": OnPage("schedules", "*Pause* beside a job"),
                "resume": OnPage("schedules", "*Resume* beside a job"),
                "run": OnPage("schedules", "*Run now* beside a job"),
                "history": OnPage("schedules", "press a job: *Runs*"),
            },
        ),
    },
)

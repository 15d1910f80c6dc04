"""The start of the system: its processes, their settings, backups, and the set-up of the environment."""

from local.core.capability import Capability, Command, Section

CAPABILITY = Capability(
    routes=("local.run.routes:add_settings_routes", "local.run.routes:add_upkeep_routes"),
    commands={
        "run": Command("local.run.commands:run", Section.SYSTEM, "Start the system and serve until Ctrl-C"),
        "participant": Command(
            "local.run.participant:participant", Section.SYSTEM, "Run one participant beside a running system"
        ),
        "doctor": Command(
            "local.run.doctor_command:doctor",
            Section.SYSTEM,
            "Find problems of the installation and say how to fix them",
        ),
        "backup": Command("local.run.commands:backup", Section.SYSTEM, "Copy all data; the system may be running"),
        "restore": Command("local.run.commands:restore", Section.SYSTEM, "Replace all data by a backup"),
        "rebuild": Command("local.run.commands:rebuild", Section.SYSTEM, "Rebuild a database from the journal"),
        "prompt": Command("local.run.prompt_commands:prompt_app", Section.WATCH, "Show the messages before a question"),
        "model": Command("local.run.model_commands:model_app", Section.MODELS, "List, download and choose models"),
    },
    aliases={"pull": "model pull"},
)

"""The start of the system: its processes, their settings, backups, and the set-up of the environment."""

from local.core.capability import Capability, Command, OnlyInTerminal, OnPage, Section

CAPABILITY = Capability(
    routes=("local.run.routes:add_settings_routes", "local.run.routes:add_upkeep_routes"),
    commands={
        "run": Command(
            "local.run.commands:run",
            Section.SYSTEM,
            "Start the system and serve until Ctrl-C",
            OnlyInTerminal("It starts the system, and with it the page."),
        ),
        "participant": Command(
            "local.run.participant:participant",
            Section.SYSTEM,
            "Run one participant beside a running system",
            OnlyInTerminal("For developers: a participant in a process of its own, beside the system."),
        ),
        "doctor": Command(
            "local.run.doctor_command:doctor",
            Section.SYSTEM,
            "Find problems of the installation and say how to fix them",
            OnPage("system/doctor", "*Check again*; before the first start only in a terminal"),
        ),
        "backup": Command(
            "local.run.commands:backup",
            Section.SYSTEM,
            "Copy all data; the system may be running",
            OnPage("system/backups", "*Back up now*"),
        ),
        "restore": Command(
            "local.run.commands:restore",
            Section.SYSTEM,
            "Replace all data by a backup",
            OnlyInTerminal(
                "The system must not be running. The page shows the command for each backup, at `#/system/backups`."
            ),
        ),
        "rebuild": Command(
            "local.run.commands:rebuild",
            Section.SYSTEM,
            "Rebuild a database from the journal",
            OnlyInTerminal("The system must not be running."),
        ),
        "prompt": Command(
            "local.run.prompt_commands:prompt_app",
            Section.WATCH,
            "Show what the model is told",
            {
                "show": OnPage(
                    "memory/soul",
                    "*What the model is told*; with a conversation: *Why* under an answer, then *Context*",
                ),
            },
        ),
        "model": Command(
            "local.run.model_commands:model_app",
            Section.MODELS,
            "List, download and choose models",
            {
                "list": OnPage("system/models", "the list *Installed models*"),
                "pull": OnPage("system/models", "*Get it*"),
                "use": OnPage("system/models", "*Use it*"),
                "check": OnPage("system/models", "*Test*"),
                "try": OnlyInTerminal("Set-up: it installs a runtime for models."),
            },
        ),
    },
    aliases={"pull": "model pull"},
)

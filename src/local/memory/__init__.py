"""What is remembered: exchanges, facts about the user, and how they are found again."""

from local.core.capability import Capability, Command, OnPage, Section

CAPABILITY = Capability(
    participants={
        "memory": "local.memory.agent:MemoryAgent",
        "memory_tools": "local.memory.tools:MemoryTools",
        "search_memory": "local.memory.tools:SearchMemoryTool",
    },
    messages=("local.memory.messages",),
    routes=("local.memory.routes:add_routes",),
    requests=("local.memory.messages:MemoryRequest",),
    commands={
        "memory": Command(
            "local.memory.commands:memory_app",
            Section.MEMORY,
            "Search, pin, edit and delete what is remembered",
            {
                "search": OnPage("memory", "the field *Search words and meaning*"),
                "list show": OnPage("memory", "the table *Exchanges*; press a question to read all of it"),
                "pin unpin": OnPage("memory", "*Pin* and *Unpin* below an exchange"),
                "delete": OnPage("memory", "*Delete…* below an exchange"),
                "facts": OnPage("memory/facts", "*Show what no longer holds*"),
                "confirm": OnPage("memory/facts", "*Confirm*"),
                "drop": OnPage("memory/facts", "*Drop*"),
                "notes": OnPage("memory/notes", "the table *Notes*"),
                "restore": OnPage("memory/notes", "*Restore* beside a note"),
                "export": OnPage("memory/file", "the field *MEMORY.md*"),
                "import": OnPage("memory/file", "*Show the changes*, then *Change the memory*"),
            },
        ),
    },
)

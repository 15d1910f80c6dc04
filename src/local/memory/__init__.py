"""The memory: exchanges, facts about the user, and the search for them."""

from local.core.capability import Capability, Command, Section

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
            "local.memory.commands:memory_app", Section.MEMORY, "Search, pin, edit and delete what is remembered"
        ),
    },
)

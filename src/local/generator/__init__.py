"""The agent that answers: the turn, its prompt, its tool calls, its conversations."""

from local.core.capability import Capability, Command, OnPage, Section

CAPABILITY = Capability(
    participants={
        "generator": "local.generator.agent:GeneratorAgent",
        "generator_b": "local.generator.agent:SecondRespondent",
    },
    routes=(
        "local.generator.routes:add_query_routes",
        "local.generator.routes:add_session_routes",
        "local.generator.import_routes:add_import_routes",
        "local.generator.routes:add_prompt_routes",
    ),
    commands={
        "sessions": Command(
            "local.generator.commands:session_app",
            Section.ASK,
            "List, search, rename, export, import and delete conversations",
            {
                "list show": OnPage("chat", "the list *Conversations*"),
                "search": OnPage("chat", "the field *Search*"),
                "rename": OnPage("chat", "*Rename* in the menu of a conversation"),
                "pin unpin": OnPage("chat", "*Pin* and *Unpin* in the menu of a conversation"),
                "move": OnPage("chat", "*Move to folder* in the menu of a conversation"),
                "tag": OnPage("chat", "*Tags* in the menu of a conversation"),
                "archive": OnPage("chat", "*Archive* in the menu of a conversation"),
                "unarchive": OnPage("chat", "*Back to the list* in the menu of a conversation"),
                "delete": OnPage("chat", "*Delete* in the menu of a conversation"),
                "export": OnPage("chat", "*Export* in the menu of a conversation"),
                "import": OnPage("chat", "*Import conversations* in the menu beside *Incognito*"),
                "branch": OnPage("chat", "*Branch* under an answer"),
            },
        ),
    },
)

"""The profiles that are there without anybody's doing."""

from __future__ import annotations

from local.instructions.assistant_profile import AssistantProfile

GENERAL = "general"
ALIASES = {"general-purpose": GENERAL, "generalist": GENERAL}

CODE = (
    "read_file", "list_files", "file_stats", "search_code", "find_symbol", "get_structure", "ast_query", "git_status",
    "git_diff", "git_log", "read_skill",
)  # fmt: skip
BUILT_IN = (
    AssistantProfile(GENERAL, "Everything that there is: what answers where no profile is named.", None),
    AssistantProfile(
        "code",
        "Reads and explains programs, and their history; changes nothing.",
        CODE,
        "Look at the code before you say what it does. Name files with the lines that your answer rests on.",
        temperature=0.2,
    ),
    AssistantProfile(
        "file",
        "Reads, writes and changes files of the workspace.",
        ("read_file", "list_files", "file_stats", "write_file", "edit_file", "delete_file", "read_skill"),
        "Read a file before you change it, and change no more of it than is asked for.",
    ),
    AssistantProfile(
        "shell",
        "Runs commands in the sandbox.",
        ("shell_exec", "shell_script", "shell_output", "shell_stop", "read_skill"),
        "Say what came of each command, with its exit status where it is not 0.",
    ),
    AssistantProfile(
        "web",
        "Searches the web and reads its pages.",
        ("web_search", "web_fetch"),
        "Answer by what the pages say, not by what you remember, and name the address of each page that you rely on.",
    ),
    AssistantProfile(
        "memory",
        "Finds what was said before, and keeps notes.",
        ("search_memory", "memory_write", "memory_edit"),
        "Look up what was said before you answer. Say when it was said, and what you did not find.",
    ),
)

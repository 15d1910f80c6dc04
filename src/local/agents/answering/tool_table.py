"""The tools that a model of each size is offered, in order: one table. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from local.agents.answering.steps import READ_RESULT
from local.models.tool_selection import Tier
from local.protocol.skill_messages import READ_SKILL
from local.protocol.turn_tools import CLARIFICATION, PLAN_STEP, PROPOSE_PLAN, TODO_LIST

_SMALL = ("search_memory", "web_search", "web_fetch", "read_file", "list_files", "write_file")
_MID = (
    *_SMALL, "edit_file", "search_code", "shell_exec", "cron_add", CLARIFICATION, PROPOSE_PLAN, PLAN_STEP,
    TODO_LIST,
)  # fmt: skip
_LARGE = (
    "search_memory", "memory_write", "memory_edit", "web_search", "web_fetch",
    "read_file", "list_files", "file_stats", "write_file", "edit_file", "delete_file",
    "search_code", "find_symbol", "get_structure", "ast_query",
    "shell_exec", "shell_script", "shell_output", "shell_stop",
    "git_status", "git_diff", "git_log", "git_commit",
    "cron_add", "cron_list", "cron_remove",
    "delegate_task", "spawn_agent", "list_agents", "terminate_agent", "send_message", "check_inbox", "emit_event",
    "wait_for_event", "compare_answers", READ_SKILL,
    READ_RESULT, CLARIFICATION, PROPOSE_PLAN, PLAN_STEP, TODO_LIST,
)  # fmt: skip

TABLE: Final[Mapping[Tier, tuple[str, ...]]] = {Tier.SMALL: _SMALL, Tier.MID: _MID, Tier.LARGE: _LARGE}
ARGUMENTS: Final[Mapping[Tier, Mapping[str, tuple[str, ...]]]] = {
    Tier.SMALL: {"search_memory": ("query",), "read_file": ("path",), "list_files": ("path",)},
    Tier.MID: {
        "search_memory": ("query",),
        "list_files": ("path", "pattern"),
        "search_code": ("pattern", "path", "files"),
        "shell_exec": ("command", "background"),
        "cron_add": ("prompt", "schedule"),
    },
    Tier.LARGE: {},
}
"""The arguments that a model is told of, where that is not all of them."""
OURS: Final = frozenset(_LARGE)
"""Tools of other names are the owner's own, or those of MCP servers: the owner has added them on purpose."""

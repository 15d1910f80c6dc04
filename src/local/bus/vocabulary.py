"""The words of the protocol: origins of queries, safety and categories of tools, permission modes, built-in tools."""

from __future__ import annotations

from typing import Final, Literal

# Who is behind a query.

USER: Final = "user"
SCHEDULE: Final = "schedule"  # a job of `cron`, at its time
AGENT: Final = "agent"  # a model, that has an agent do a task
BACKGROUND: Final = frozenset({SCHEDULE})  # no user waits for these answers, so every user's turn goes first

Safety = Literal["L0", "L1", "L2"]
"""L0 reads only; L1 changes what can be undone, in the workspace; L2 is everything else, and whatever is undeclared."""

Category = Literal["read", "write", "search", "shell", "web", "git", "data", "meta", "memory"]
"""What a tool works on; `meta` is the conversation itself."""

UNDECLARED_SAFETY: Safety = "L2"
UNDECLARED_CATEGORY: Category = "data"

Mode = Literal["default", "plan", "acceptEdits", "dontAsk", "bypassPermissions"]
"""What is done about a call that nobody has decided: L1 and L2 ask; nothing but L0 is made; L1 is made; L1 and L2 are
denied; everything is made."""

ELEVATED_MODES: frozenset[Mode] = frozenset({"acceptEdits", "bypassPermissions"})
"""Modes in which more is done without approval than the owner's settings allow."""

NON_INTERACTIVE: Mode = "dontAsk"
"""The mode where no person can be asked."""


MEMORY_TOOLS: Final = ("search_memory", "memory_write", "memory_edit")
"""The tools that read what is remembered, or change it."""


# The names of the built-in tools. The terminal uses them, too, so this file imports nothing.

CLARIFICATION = "request_clarification"  # by which a model asks its user something
TODO_LIST = "todo"  # the tool by which a model keeps its to-do list
PROPOSE_PLAN = "propose_plan"  # by which it asks for approval of a plan
PLAN_STEP = "plan_step"  # the tool by which it reports the progress of its plan
TOOL_SEARCH = "tool_search"  # by which it finds tools that it is not offered
CALL_TOOL = "call_tool"  # by which it calls one of those
TRUST_FOLDER = "trust_folder"  # the question whether the owner trusts a folder; no tool of that name is offered

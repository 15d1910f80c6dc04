"""How much a tool may do without leave, and of what kind it is: declared by the tool, and never lowered by its name."""

from __future__ import annotations

from typing import Literal

Safety = Literal["L0", "L1", "L2"]
"""L0 reads only; L1 changes what can be undone, in the workspace; L2 is everything else, and whatever is undeclared."""

Category = Literal["read", "write", "search", "shell", "web", "git", "data", "meta", "memory"]
"""What a tool works on; `meta` is the conversation itself."""

UNDECLARED_SAFETY: Safety = "L2"
UNDECLARED_CATEGORY: Category = "data"

Mode = Literal["default", "plan", "acceptEdits", "dontAsk", "bypassPermissions"]
"""What is done about a call that nobody has decided: L1 and L2 ask; nothing but L0 is made; L1 is made; L1 and L2 are
denied; everything is made."""

LOOSER: frozenset[Mode] = frozenset({"acceptEdits", "bypassPermissions"})
"""Modes that do more without leave than the owner's settings say by themselves."""

NOBODY_THERE: Mode = "dontAsk"
"""The mode of whoever could not be asked."""

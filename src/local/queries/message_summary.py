"""A message in one short line, for lists of messages."""

from __future__ import annotations

import json
from typing import Any

from pydantic_core import from_json

LONGEST = 160
_TELLING = {
    "query.received": ("query",),
    "response.generation": ("answer", "error"),
    "query.failed": ("error",),
    "tool.request.": ("args",),
    "tool.result.": ("error", "result"),
    "critique.result": ("score", "feedback"),
    "pairwise.result": ("winner", "feedback"),
    "bus.dead": ("error",),
    "context.provided": ("facts", "recalled"),
    "session.changed": ("title",),
}
_SAID_ELSEWHERE = {"query_id", "session_id", "respondent_id", "attempt", "call_id", "tool", "generator_id"}


def message_summary(subject: str, payload: bytes) -> str | None:
    """What the payload says, cut to 160 characters; None where there is none, or it is no object."""
    try:
        value = from_json(payload) if payload else None
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    if subject == "agent.transition":
        states = [value.get("from"), value.get("to"), *(each.get("to") for each in value.get("then") or ())]
        return " → ".join(map(str, states))[:LONGEST]
    telling = next((names for known, names in _TELLING.items() if subject.startswith(known)), ())
    said = [_shown(value[name]) for name in telling if value.get(name) not in (None, "", {})]
    return _cut(": ".join(said) if said else " ".join(_rest(value)))


def _rest(value: dict[str, Any]) -> list[str]:
    return [
        f"{name}={_shown(item)}"
        for name, item in value.items()
        if name not in _SAID_ELSEWHERE and item not in (None, "", [], {}, False)
    ]


def _shown(item: Any) -> str:
    if isinstance(item, dict) and "message" in item:
        return str(item["message"])
    return item if isinstance(item, str) else json.dumps(item, ensure_ascii=False, separators=(",", ":"))


def _cut(text: str) -> str:
    line = " ".join(text[: 4 * LONGEST].split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 2]} …"

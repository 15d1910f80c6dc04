"""What was said of goals while its owner was away, shown in a conversation before the next prompt."""

from __future__ import annotations

from typing import Any

from local.apps.system_client import SystemClient
from local.apps.terminal import date_and_time

REFLECTION, UNSEEN = "reflection", "goals_unseen"


def goal_words(client: SystemClient, health: dict[str, Any]) -> list[str]:
    """A line for each goal with words that were not seen yet; they count as seen from now on. Asked for only where
    `health` says that there are some. Raises as the client does."""
    rows = health.get("participants") or []
    if not any(row["name"] == REFLECTION and (row.get("counters") or {}).get(UNSEEN) for row in rows):
        return []
    unseen = [goal for goal in client.request("GET", "/goals")["goals"] if not goal["is_seen"]]
    for goal in unseen:
        client.request("PATCH", f"/goals/{goal['goal_id']}", {"seen": goal["words_at"], "by": "terminal"})
    return [f"{date_and_time(goal['words_at'])}, {goal['text']}: {goal['words']}" for goal in unseen]

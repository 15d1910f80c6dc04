"""What a model has set itself to do for a query, as the calls of its own tools tell it."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any, Final

from local.protocol.plan_messages import latest_plan
from local.protocol.todo_messages import latest_list

Json = dict[str, Any]
NO_WORK: Final = MappingProxyType[str, Any]({"todo": (), "plan": None})


def work_of(calls: Sequence[Json]) -> Json:
    """The list of what is to be done and the plan after these calls, for whoever looks at the query."""
    return {"todo": latest_list(calls), "plan": latest_plan(calls)}

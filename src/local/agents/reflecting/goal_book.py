"""The goals of the owner: every change is stored before it counts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from local.errors import BadRequest
from local.protocol.goal_messages import GoalRecord
from local.services.reflecting.goal import Goal, GoalState
from local.services.reflecting.goal_file import GoalFile
from local.services.schedules.schedule import require_future
from local.services.schedules.time_zone import zone_of_this_machine

EVERY_DAY: Final = "every 1d"
MOST_CHARS = 1000  # of a goal
KEPT_ENDED = 20  # goals that are done or dropped, the latest


class BadGoal(BadRequest):
    """A goal that cannot be kept."""

    kind = "invalid"


class NoSuchGoal(BadRequest):
    """There is no such goal."""

    kind = "not_found"

    def __init__(self, goal_id: str) -> None:
        super().__init__(f"there is no goal {goal_id[:80]!a}; `local2 goals list` shows them")


class GoalBook:
    """`clock` gives seconds since 1970; `most` is how many may be active. Every coroutine raises `StoreFailed`."""

    def __init__(self, file: GoalFile, most: int, clock: Callable[[], float]) -> None:
        self._file, self._most, self._clock = file, most, clock
        self._goals: dict[str, Goal] = {}
        self._lock = asyncio.Lock()

    async def load(self) -> None:
        """Read what is stored."""
        self._goals = {goal.goal_id: goal for goal in await asyncio.to_thread(self._file.read)}

    def listed(self) -> list[Goal]:
        """Every goal, the oldest first."""
        return list(self._goals.values())

    def due(self) -> list[Goal]:
        """The goals for which a check is due now."""
        now = int(self._clock())
        return [goal for goal in self._goals.values() if goal.due_at(now) is not None]

    def untold(self) -> list[Goal]:
        """The goals of which something was said that may not be on record."""
        return [goal for goal in self._goals.values() if goal.words and not goal.words.is_told]

    def unseen(self) -> int:
        """The number of goals of which something was said that the owner has not seen."""
        return sum(goal.words is not None and not goal.words.is_seen for goal in self._goals.values())

    def get(self, goal_id: str) -> Goal:
        """A goal, by its id or the only beginning of one. Raises `NoSuchGoal`."""
        found = [goal for key, goal in self._goals.items() if goal_id and key.startswith(goal_id)]
        if len(found) != 1:
            raise NoSuchGoal(goal_id)
        return found[0]

    async def set(self, goal_id: str, text: str, schedule: str, by: str) -> Goal:
        """A new one; the same id again changes nothing. Raises `BadGoal`, `BadSchedule`."""
        if goal_id in self._goals:
            return self._goals[goal_id]
        now, words = int(self._clock()), " ".join(text.split())
        if not words or len(words) > MOST_CHARS:
            raise BadGoal(f"text: {'is blank' if not words else 'is too long'}; expected 1 to {MOST_CHARS} characters")
        self._require_room()
        when = " ".join(schedule.split()) or EVERY_DAY
        goal = Goal(goal_id, words, when, zone_of_this_machine(), created_at=now, created_by=by, decided=now)
        require_future(goal.times, now)
        await self._keep(goal_id, lambda: goal)
        return goal

    async def become(self, goal_id: str, state: GoalState) -> Goal:
        """Done, dropped, or active again from now on. Raises `NoSuchGoal`, `BadGoal`."""
        goal = self.get(goal_id)
        if state is GoalState.ACTIVE and goal.state is not state:
            self._require_room()
        now = int(self._clock())
        return await self.change(goal.goal_id, lambda each: replace(each, state=state, decided=now))

    async def change(self, goal_id: str, how: Callable[[Goal], Goal]) -> Goal:
        """What `how(goal)` makes of a goal as it stands then. Raises `NoSuchGoal`."""
        return await self._keep(goal_id, lambda: how(self.get(goal_id)))

    async def _keep(self, goal_id: str, made: Callable[[], Goal]) -> Goal:
        async with self._lock:
            goal = made()
            goals = {**self._goals, goal_id: goal}
            kept = {each.goal_id: each for each in _without_old(goals.values())}
            await asyncio.to_thread(self._file.write, kept.values())
            self._goals = kept
        return goal

    def record(self, goal: Goal) -> GoalRecord:
        """A goal as everybody knows it."""
        words = goal.words
        return GoalRecord(
            goal_id=goal.goal_id, text=goal.text, schedule=goal.schedule, time_zone=goal.time_zone,
            state=goal.state.value, created_at=goal.created_at, created_by=goal.created_by,
            next_at=goal.next_at(int(self._clock())), checks=goal.checks, quiet=goal.quiet,
            words=words.text if words else "", words_at=words.due_at if words else None,
            is_seen=words is None or words.is_seen,
        )  # fmt: skip

    def _require_room(self) -> None:
        if sum(goal.state is GoalState.ACTIVE for goal in self._goals.values()) >= self._most:
            raise BadGoal(f"there are {self._most} goals, and no room for more: end one, or see reflection.yaml")


def _without_old(goals: Iterable[Goal]) -> list[Goal]:
    """Without those that have ended before the latest ones; what is not seen yet stays."""
    every = list(goals)
    ended = [goal for goal in every if goal.state is not GoalState.ACTIVE and (not goal.words or goal.words.is_seen)]
    old = {goal.goal_id for goal in sorted(ended, key=lambda goal: goal.decided)[:-KEPT_ENDED]}
    return [goal for goal in every if goal.goal_id not in old]

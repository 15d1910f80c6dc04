"""The routine that checks the owner's goals, and speaks when there is something to say."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from local import failpoints
from local.agents.reflecting import routine_time
from local.agents.reflecting.background_model import BackgroundQuestion, NotAsAsked
from local.agents.reflecting.goal_book import GoalBook
from local.agents.reflecting.recent_exchanges import RecentExchanges, recent_exchanges
from local.agents.reflecting.reflection_config import ReflectionConfig
from local.agents.reflecting.routine import Routine, RoutineContext
from local.agents.reflecting.routine_diary import RoutineDiary
from local.bus.bus import Bus
from local.errors import LocalError
from local.protocol.envelope import Trace, new_id
from local.protocol.goal_messages import GoalChanged, GoalRequest, GoalResult, GoalSaid
from local.services.reflecting import goal_prompt
from local.services.reflecting.goal import Goal, GoalState, GoalWords
from local.services.reflecting.goal_file import GoalFile
from local.services.reflecting.goal_prompt import GoalCheck

FILE_NAME = "heartbeat.json"  # in the data directory
MOST_EXCHANGES = 12  # for a check, the latest
STATES = {"done": GoalState.DONE, "drop": GoalState.DROPPED, "reopen": GoalState.ACTIVE}
_NAMESPACE = uuid.UUID("3c9b2a64-0a51-4f5e-8a8e-5f2f0a6f7d10")


class Heartbeat(Routine):
    """Each time at which a goal is due is checked once at most: that is stored before the model is asked. What it has
    found is stored before it is told, and told until that is on record. It has no tools."""

    name = "heartbeat"
    publishes = (Routine, GoalSaid, GoalChanged, "memory.request.list")

    def __init__(self, config: ReflectionConfig, context: RoutineContext, data_dir: Path) -> None:
        super().__init__(context, config.beating(), RoutineDiary(data_dir, FILE_NAME))
        self.book = GoalBook(GoalFile(data_dir), config.heartbeat_most_goals, context.clock)
        self._all_now = False
        self.said = 0  # so often, since the start

    @asynccontextmanager
    async def running(self, bus: Bus) -> AsyncIterator[None]:
        """As every routine, with the goals that are stored."""
        await self.book.load()
        async with super().running(bus):
            yield

    def waits_for(self) -> str:
        """As of every routine; and for a goal that is due."""
        if self.book.untold():
            return ""
        return super().waits_for() or ("" if self.book.due() else "no goal is due")

    def want(self) -> str:
        """Have every goal checked now that is neither done nor dropped."""
        out = super().want()
        self._all_now = not out
        return out

    async def once(self) -> float:
        """Check what is due."""
        wanted, self._all_now = self._all_now, False
        for goal in self.book.untold():
            await self._tell(goal)
        active = [goal for goal in self.book.listed() if goal.state is GoalState.ACTIVE]
        for goal in active if wanted else self.book.due():
            if self._must_stop(wanted=wanted):
                break
            await self._check(goal.goal_id)
        return self.state.read_until

    async def answer(self, request: GoalRequest, request_id: str) -> GoalResult:
        """What a door wants of goals. Raises `NoSuchGoal`, `BadGoal`, `BadSchedule`, `StoreFailed`."""
        book, verb = self.book, request.verb
        if verb == "list":
            goals = book.listed()
        elif verb == "seen":
            goal, due_at = book.get(request.goal_id), int(request.words_at)
            goals = [await book.change(goal.goal_id, lambda each: each.words_become(due_at, is_seen=True))]
        elif verb == "set":
            goal_id = uuid.uuid5(_NAMESPACE, request_id).hex[:12]  # the same for a request that comes again
            goals = [await book.set(goal_id, request.text, request.schedule, request.by)]
            await self._tell_change(goals[0], request.by)
        else:
            goals = [await book.become(request.goal_id, STATES[verb])]
            await self._tell_change(goals[0], request.by)
        return GoalResult(verb=verb, goals=tuple(map(book.record, goals)))

    async def forget(self, engram_id: str) -> None:
        """As of every routine; and of what was said of a goal. Raises `StoreFailed`."""
        await super().forget(engram_id)
        for goal in self.book.listed():
            if goal.rests_on(engram_id):
                await self.book.change(goal.goal_id, lambda each: replace(each, words=None))

    def _must_stop(self, *, wanted: bool) -> bool:
        """Whether what is still due has to wait: somebody is there, or nothing is left of today's budget."""
        if wanted:
            return bool(routine_time.out_of_tokens(self.state, self.policy, self.context.clock()))
        return bool(super().waits_for())

    async def _check(self, goal_id: str) -> None:
        now, before = int(self.context.clock()), self.book.get(goal_id)
        if before.state is not GoalState.ACTIVE:
            return
        due_at = before.due_at(now) or now
        goal = await self.book.change(goal_id, lambda each: each.decided_for(due_at, now))
        failpoints.reach("heartbeat.decided")
        try:
            recent = await recent_exchanges(self.bus, 0.0, MOST_EXCHANGES)
            found = await self._ask(goal, recent)
        except NotAsAsked:
            raise
        except (LocalError, asyncio.CancelledError):  # no model has replied
            decided, checked_for = before.decided, before.checked_for
            await self.book.change(goal_id, lambda each: replace(each, decided=decided, checked_for=checked_for))
            raise
        await self._note(goal_id, found, GoalWords(found.text, due_at, recent.engram_ids, recent.left_out))

    async def _note(self, goal_id: str, found: GoalCheck, words: GoalWords) -> None:
        """Keep what a check has found, unless its goal was ended, or what it rests on deleted meanwhile."""
        if self.book.get(goal_id).state is not GoalState.ACTIVE or self.has_forgotten(words.sources):
            return
        said = words if words.text else None
        await self.book.change(goal_id, lambda each: each.checked(said, is_done=found.is_done))
        failpoints.reach("heartbeat.checked")
        if said:
            await self._tell(self.book.get(goal_id))

    async def _ask(self, goal: Goal, recent: RecentExchanges) -> GoalCheck:
        messages = partial(goal_prompt.messages, goal, recent.exchanges, self.context.clock())
        question = BackgroundQuestion(messages, goal_prompt.SCHEMA, goal_prompt.read)
        return await self.ask(question, _came_of, about=goal.goal_id)

    async def _tell(self, goal: Goal) -> None:
        """Say what there is to say of a goal, under ids that are always the same, and note that it is on record."""
        if (words := goal.words) is None:
            return
        said = GoalSaid(
            goal_id=goal.goal_id, goal=goal.text, text=words.text, due_at=words.due_at, sources=words.sources,
            left_out=words.left_out, is_done=goal.state is GoalState.DONE,
            model=self.context.model.name,
        )  # fmt: skip
        said_id = uuid.uuid5(_NAMESPACE, f"{goal.goal_id}\n{words.due_at}").hex
        await self.bus.publish(said, Trace(said_id, None, said_id), envelope_id=said_id)
        self.said += 1
        if goal.state is GoalState.DONE:
            await self._tell_change(goal, self.name)
        await self.book.change(goal.goal_id, lambda each: each.words_become(words.due_at, is_told=True))

    async def _tell_change(self, goal: Goal, by: str) -> None:
        change = GoalChanged(goal_id=goal.goal_id, text=goal.text, state=goal.state.value, by=by)
        await self.bus.publish(change, Trace(new_id()))


def _came_of(found: GoalCheck) -> str:
    return "reached" if found.is_done else "something to say" if found.text else "nothing to say"

"""What all routines have in common: they wait for their time and for silence, have a budget a day, and a switch."""

from __future__ import annotations

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import ClassVar, TypeVar

from local.agents.reflecting import routine_time
from local.agents.reflecting.background_model import BackgroundCost, BackgroundModel, BackgroundQuestion, NotAsAsked
from local.agents.reflecting.routine_diary import RoutineDiary, RoutineState
from local.agents.reflecting.routine_time import RoutinePolicy
from local.agents.reflecting.silence import Silence
from local.bus.bus import Bus
from local.errors import LocalError
from local.protocol.envelope import Trace, new_id
from local.protocol.model_used import ModelUsed
from local.protocol.reflection_messages import RoutineRecord
from local.runtime.participant import Publications
from local.tick import until_next_tick

log = logging.getLogger(__name__)

LOOK_SECONDS = 60.0
UNREADABLE = "unreadable"  # what came of a reply that could not be read
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RoutineContext:
    """What routines of one process share. `clock` gives seconds since 1970."""

    model: BackgroundModel
    silence: Silence = field(default_factory=Silence)
    clock: Callable[[], float] = time.time


class Routine(ABC):
    """Use as `async with routine.running(bus)`. What it does beside that is `once`."""

    name: ClassVar[str]
    publishes: ClassVar[Publications] = (BackgroundModel,)

    def __init__(self, context: RoutineContext, policy: RoutinePolicy, diary: RoutineDiary) -> None:
        self.context, self.policy, self._diary = context, policy, diary
        self.state = RoutineState()
        self.problem = ""
        self.bus: Bus
        self._wanted = asyncio.Event()
        self._forgotten: set[str] = set()

    @abstractmethod
    async def once(self) -> float:
        """Do it, and give the time up to which exchanges are read now. Raises `LocalError`."""

    def waits_for(self) -> str:
        """What the routine waits for, in a few words; empty if it is time."""
        idle = self.context.silence.seconds()
        return routine_time.what_it_waits_for(self.state, self.policy, self.context.clock(), idle)

    @asynccontextmanager
    async def running(self, bus: Bus) -> AsyncIterator[None]:
        """Look each minute whether it is time."""
        self.bus = bus
        self.state = await asyncio.to_thread(self._diary.read)
        looking = asyncio.create_task(self._look(), name=f"look whether it is time: {self.name}")
        try:
            yield
        finally:
            looking.cancel()
            await asyncio.wait([looking])

    async def switch(self, *, is_on: bool) -> None:
        """Switch it for as long as nobody switches it again. Raises `StoreFailed`."""
        await self.keep(replace(self.state, is_on=is_on))

    def want(self) -> str:
        """Have it done now; gives why it cannot be, empty if it can."""
        out = routine_time.out_of_tokens(self.state, self.policy, self.context.clock())
        if not out:
            self._wanted.set()
        return out

    async def forget(self, engram_id: str) -> None:
        """An exchange was deleted: what rests on it is not to be told any more."""
        self._forgotten.add(engram_id)

    def has_forgotten(self, engram_ids: Iterable[str]) -> bool:
        """Whether one of these was deleted since this process began."""
        return not self._forgotten.isdisjoint(engram_ids)

    async def ask(self, question: BackgroundQuestion[T], came_of: Callable[[T], str], about: str = "") -> T:
        """What the model replies; that is counted, and told with what came of it, in a few words. Raises `NotAsAsked`,
        `ModelError` and `StoreFailed`."""
        cost, outcome = BackgroundCost(), UNREADABLE
        try:
            answer = await self.context.model.ask(self.name, question, cost)
            outcome = came_of(answer)
        finally:
            if cost.calls:
                self._tell_cost(cost, outcome, about)
                today = datetime.fromtimestamp(self.context.clock()).date()
                await self.keep(self.state.spent(cost.tokens, today))
        return answer

    async def keep(self, state: RoutineState) -> None:
        """Store how the routine stands now. Raises `StoreFailed`."""
        self.state = state
        await asyncio.to_thread(self._diary.write, state)

    def record(self) -> RoutineRecord:
        """How the routine is, for doors."""
        state = self.state
        return RoutineRecord(
            is_on=routine_time.is_on(state, self.policy),
            why=self.waits_for(),
            problem=self.problem,
            done_at=state.done_at or None,
            read_until=state.read_until or None,
            tokens_today=state.tokens_on(datetime.fromtimestamp(self.context.clock()).date()),
            tokens_per_day=self.policy.tokens_per_day,
        )

    async def _look(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(until_next_tick(time.monotonic(), LOOK_SECONDS)):
                    await self._wanted.wait()
            if self.waits_for() and not self._wanted.is_set():
                continue
            self._wanted.clear()
            try:
                await self._do()
            except LocalError as error:
                if str(error) != self.problem:
                    log.warning("%s: not for now: %s", self.name, error)
                self.problem = str(error)
            except Exception as error:  # a fault of ours: the routine is to go on, and to say so
                log.exception("%s: has failed", self.name)
                self.problem = f"{type(error).__name__}: {error}"
                await self.keep(replace(self.state, done_at=self.context.clock()))

    async def _do(self) -> None:
        try:
            read_until = await self.once()
        except NotAsAsked:  # would be no better in a minute
            await self.keep(replace(self.state, done_at=self.context.clock()))
            raise
        await self.keep(replace(self.state, read_until=read_until, done_at=self.context.clock()))
        self.problem = ""

    def _tell_cost(self, cost: BackgroundCost, outcome: str, about: str) -> None:
        used = ModelUsed(
            purpose=self.name, model=self.context.model.name, calls=cost.calls, prompt_tokens=cost.prompt_tokens,
            completion_tokens=cost.completion_tokens, seconds=round(cost.seconds, 3), outcome=outcome, about=about,
        )  # fmt: skip
        self.bus.post(used, Trace(new_id()))

"""The common parts of all routines: they wait for their time and for silence, and have a daily budget and a switch."""

from __future__ import annotations

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import date, datetime
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import to_json

from local.bus.bus import Bus
from local.bus.envelope import Trace, new_id
from local.bus.messages import ModelUsed
from local.core.config import Settings
from local.core.database import store_failure
from local.core.errors import LocalError, ModelError
from local.core.files import until_next_tick, write_private
from local.core.front_matter import split_front_matter
from local.core.model_reply import UnreadableReply
from local.memory.messages import MemoryRequest, MemoryResult
from local.models.chat import ChatModel, whole_reply
from local.models.leases import Leases
from local.reflection.messages import RoutineRecord
from local.reflection.prompts import ToldExchange
from local.runtime.participant import Publications
from local.skills.messages import SkillDraft, SkillRequest, SkillResult

# The model's background questions: the reply is an object of a given form, its cost is counted.

T = TypeVar("T")
Json = dict[str, Any]
Unread = tuple[tuple[str, str], ...]  # replies that could not be read, each with the reason

CALLS = 2  # of the model for one question
CONTEXT_TOKENS = 32_000  # if the size of the window is unknown
MAX_TOKENS = 1_500  # of a reply


class NotAsAsked(ModelError):
    """The error for a model whose replies never had the requested form."""


@dataclass(frozen=True, slots=True)
class BackgroundQuestion(Generic[T]):
    """A question to a model: `messages` with its unreadable replies so far, the schema of the reply, and its reader,
    which raises `UnreadableReply`.
    """

    messages: Callable[[Unread], list[Json]]
    schema: Json
    read: Callable[[str], T]


@dataclass(slots=True)
class BackgroundCost:
    """The cost of a question so far."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        """The tokens of prompts and replies together."""
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True, slots=True)
class BackgroundModel:
    """A model that is called with a lease for each question, and makes room for users' turns."""

    publishes: ClassVar[Publications] = (Leases,)
    chat: ChatModel
    name: str
    leases: Leases = field(default_factory=Leases)
    num_ctx: int | None = None

    async def ask(self, purpose: str, question: BackgroundQuestion[T], cost: BackgroundCost) -> T:
        """Return the parsed reply; an unreadable one is requested once more. `purpose` is the word for the line of the
        model; `cost` is added to. Raises `NotAsAsked` and `ModelError`.
        """
        return await self.leases.in_background(self.name, purpose, lambda: self._asked(question, cost))

    async def _asked(self, question: BackgroundQuestion[T], cost: BackgroundCost) -> T:
        unread: Unread = ()
        while True:
            reply = await self._reply(question.messages(unread), question.schema, cost)
            try:
                return question.read(reply)
            except UnreadableReply as error:
                unread = (*unread, (reply, str(error)))
                if len(unread) == CALLS:
                    raise NotAsAsked(f"{self.name} has not replied as asked: {error}") from None

    async def _reply(self, messages: list[Json], schema: Json, cost: BackgroundCost) -> str:
        options = {"num_ctx": self.num_ctx or CONTEXT_TOKENS, "temperature": 0, "num_predict": MAX_TOKENS}
        begun = time.monotonic()
        stream = self.chat.chat(self.name, messages, options=options, format=schema)
        reply, usage = await whole_reply(stream)
        cost.calls += 1
        cost.prompt_tokens += usage.prompt_tokens
        cost.completion_tokens += usage.completion_tokens
        cost.seconds += time.monotonic() - begun
        return reply


# The owner's recent exchanges, without those with untrusted content.

MEMORY_SECONDS = 20.0


class MemoryUnread(LocalError):
    """The error for a memory that did not answer."""

    kind = "unavailable"


@dataclass(frozen=True, slots=True)
class RecentExchanges:
    """The exchanges that may be read, oldest first, the time up to which they reach (seconds since 1970), and the
    number of those left out because of untrusted content.
    """

    exchanges: tuple[ToldExchange, ...]
    until: float
    left_out: int = 0

    @property
    def engram_ids(self) -> tuple[str, ...]:
        """The ids of the exchanges that may be read."""
        return tuple(each.engram_id for each in self.exchanges)


async def recent_exchanges(bus: Bus, since: float, most: int) -> RecentExchanges:
    """The exchanges after a time, the latest at most. Raises `MemoryUnread` and `RequestTimeout`."""
    request = MemoryRequest(verb="list", limit=most)
    result = await bus.request(request, MemoryResult, MEMORY_SECONDS, Trace(new_id()))
    if result.error is not None:
        raise MemoryUnread(result.error.message)
    fresh = [each for each in result.engrams if each.asked_at > since and each.note_of is None]
    read = [each for each in reversed(fresh) if not each.tainted]
    until = max((each.asked_at for each in fresh), default=since)
    told = tuple(ToldExchange(each.engram_id, each.query, each.answer) for each in read)
    return RecentExchanges(told, until, len(fresh) - len(read))


# A routine's progress, its cost, and whether it is switched on: in one small file.

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RoutineState:
    """The progress of a routine: `read_until` is the time of the last exchange that was read, `done_at` its last run,
    both in seconds since 1970; `tokens` were used on the day `day`. `is_on` is None if it was never switched.
    """

    is_on: bool | None = None
    read_until: float = 0.0
    done_at: float = 0.0
    day: str = ""
    tokens: int = 0

    def tokens_on(self, today: date) -> int:
        """Return the tokens used today."""
        return self.tokens if self.day == today.isoformat() else 0

    def spent(self, tokens: int, today: date) -> RoutineState:
        """The state after so many more."""
        return replace(self, day=today.isoformat(), tokens=self.tokens_on(today) + tokens)


class RoutineDiary:
    """The file with the state of one routine. An unreadable one is reported and started again; then exchanges are read
    again.
    """

    def __init__(self, data_dir: Path, file_name: str) -> None:
        self._path = data_dir / file_name

    def read(self) -> RoutineState:
        """The state that was written last."""
        try:
            return TypeAdapter(RoutineState).validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return RoutineState()
        except (OSError, ValidationError) as error:
            log.warning("%s cannot be read and is started again: %s", self._path, str(error).partition("\n")[0])
            return RoutineState()

    def write(self, state: RoutineState) -> None:
        """Raises `StoreFailed`."""
        try:
            write_private(self._path, to_json(asdict(state)).decode() + "\n")
        except OSError as error:
            raise store_failure(self._path, error, what="cannot be written: ") from None


# Whether it is time for a routine.

HOUR, MINUTE = 3600.0, 60.0


@dataclass(frozen=True, slots=True)
class RoutinePolicy:
    """The settings of a routine: whether it is on by default, the seconds between two runs, the seconds without a
    question that it waits for, and its tokens per day.
    """

    is_on: bool
    every_seconds: float
    idle_seconds: float
    tokens_per_day: int


def what_it_waits_for(state: RoutineState, policy: RoutinePolicy, now: float, idle_seconds: float) -> str:
    """Return the reason to wait in a few words; empty if it is time. `now` is in seconds since 1970; after the clock
    was set back no time counts as passed, but for no longer than the pause.
    """
    if not is_on(state, policy):
        return "it is switched off"
    due = min(state.done_at, now) + policy.every_seconds - now
    if due > 0:
        return f"{due / HOUR:.1f} h until the next time"
    if idle_seconds < policy.idle_seconds:
        return f"{policy.idle_seconds / MINUTE:g} min without a question"
    return out_of_tokens(state, policy, now)


def out_of_tokens(state: RoutineState, policy: RoutinePolicy, now: float) -> str:
    """Return a short text if today's tokens are used up; else empty."""
    used = state.tokens_on(datetime.fromtimestamp(now).date())
    return f"{used} of {policy.tokens_per_day} tokens are used today" if used >= policy.tokens_per_day else ""


def is_on(state: RoutineState, policy: RoutinePolicy) -> bool:
    """Whether the routine is on: as last switched, else by the settings."""
    return policy.is_on if state.is_on is None else state.is_on


# The settings of reflection.


class ReflectionConfig(Settings):
    """The settings in `reflection.yaml`; the comments there explain each key."""

    dream: bool = True
    dream_every_hours: float = Field(24.0, gt=0)
    dream_idle_minutes: float = Field(10.0, ge=0)
    dream_least_exchanges: int = Field(3, ge=1)
    dream_tokens_per_day: int = Field(20_000, ge=0)
    monologue: bool = False
    monologue_every_minutes: float = Field(60.0, gt=0)
    monologue_idle_minutes: float = Field(5.0, ge=0)
    monologue_tokens_per_day: int = Field(10_000, ge=0)
    heartbeat: bool = True
    heartbeat_idle_minutes: float = Field(2.0, ge=0)
    heartbeat_tokens_per_day: int = Field(20_000, ge=0)
    heartbeat_most_goals: int = Field(30, ge=0, le=200)
    model: str | None = None
    num_ctx: int | None = Field(None, ge=512)
    timeout_seconds: float = Field(300, gt=0)

    def dreaming(self) -> RoutinePolicy:
        """The policy of the dreamer."""
        return RoutinePolicy(
            self.dream, self.dream_every_hours * HOUR, self.dream_idle_minutes * MINUTE, self.dream_tokens_per_day
        )

    def thinking(self) -> RoutinePolicy:
        """The policy of the inner monologue."""
        every, idle = self.monologue_every_minutes * MINUTE, self.monologue_idle_minutes * MINUTE
        return RoutinePolicy(self.monologue, every, idle, self.monologue_tokens_per_day)

    def beating(self) -> RoutinePolicy:
        """Return the policy of the heartbeat; each goal has its own schedule."""
        return RoutinePolicy(self.heartbeat, 0.0, self.heartbeat_idle_minutes * MINUTE, self.heartbeat_tokens_per_day)


# The time since the last question.


class Silence:
    """The time since the last question or answer."""

    def __init__(self) -> None:
        self._broken_at = time.monotonic()

    def broken(self) -> None:
        """Restart the silence, because a user was active."""
        self._broken_at = time.monotonic()

    def seconds(self) -> float:
        """Return the duration of the silence."""
        return time.monotonic() - self._broken_at


LOOK_SECONDS = 60.0
UNREADABLE = "unreadable"  # the outcome of a reply that could not be read


@dataclass(frozen=True, slots=True)
class RoutineContext:
    """The shared resources of the routines in one process. `clock` gives seconds since 1970."""

    model: BackgroundModel
    silence: Silence = field(default_factory=Silence)
    clock: Callable[[], float] = time.time


class Routine(ABC):
    """Base class of background work that runs when it is due and no user is active, within a daily budget of tokens.
    Use as `async with routine.running(bus)`. Subclasses implement `once`.
    """

    name: ClassVar[str]
    publishes: ClassVar[Publications] = (BackgroundModel,)

    def __init__(self, context: RoutineContext, policy: RoutinePolicy, diary: RoutineDiary) -> None:
        self.context, self.policy, self._diary = context, policy, diary
        self.state = RoutineState()
        self.problem = ""
        self.bus: Bus
        self._wanted, self._writing = asyncio.Event(), asyncio.Lock()
        self._forgotten: set[str] = set()

    @abstractmethod
    async def once(self) -> float:
        """Run once, and return the time up to which exchanges are read now. Raises `LocalError`."""

    def waits_for(self) -> str:
        """Return what the routine waits for, in a few words; empty if it may run."""
        idle = self.context.silence.seconds()
        return what_it_waits_for(self.state, self.policy, self.context.clock(), idle)

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
        """Switch the routine on or off until it is switched again. Raises `StoreFailed`."""
        await self.keep(replace(self.state, is_on=is_on))

    def want(self) -> str:
        """Request a run now; returns why that is not possible, empty if it is."""
        out = out_of_tokens(self.state, self.policy, self.context.clock())
        if not out:
            self._wanted.set()
        return out

    async def forget(self, engram_id: str) -> None:
        """Forget a deleted exchange: nothing based on it is published any more."""
        self._forgotten.add(engram_id)

    def has_forgotten(self, engram_ids: Iterable[str]) -> bool:
        """Whether one of these was deleted since this process began."""
        return not self._forgotten.isdisjoint(engram_ids)

    async def ask(self, question: BackgroundQuestion[T], came_of: Callable[[T], str], about: str = "") -> T:
        """Return the model's reply; its cost is counted and published with a short description of the result. Raises
        `NotAsAsked`, `ModelError` and `StoreFailed`.
        """
        cost, outcome = BackgroundCost(), UNREADABLE
        try:
            answer = await self.context.model.ask(self.name, question, cost)
            outcome = came_of(answer)
        finally:
            if cost.calls:
                self._publish_cost(cost, outcome, about)
                today = datetime.fromtimestamp(self.context.clock()).date()
                await self.keep(self.state.spent(cost.tokens, today))
        return answer

    async def keep(self, state: RoutineState) -> None:
        """Store the routine's state. Raises `StoreFailed`."""
        self.state = state
        async with self._writing:
            await asyncio.to_thread(self._diary.write, self.state)

    def record(self) -> RoutineRecord:
        """Return the routine's state for frontends."""
        state = self.state
        return RoutineRecord(
            is_on=is_on(state, self.policy),
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
            except Exception as error:  # a bug: the routine must continue, and report it
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

    def _publish_cost(self, cost: BackgroundCost, outcome: str, about: str) -> None:
        used = ModelUsed(
            purpose=self.name, model=self.context.model.name, calls=cost.calls, prompt_tokens=cost.prompt_tokens,
            completion_tokens=cost.completion_tokens, seconds=round(cost.seconds, 3), outcome=outcome, about=about,
        )  # fmt: skip
        self.bus.post(used, Trace(new_id()))


# The skills that are ready, as far as they can be read whole.

ANSWER_SECONDS = 5.0
MOST_CHARS = 4_000  # of one that is read
ROOM = 12_000  # for all of them, in characters


@dataclass(frozen=True, slots=True)
class SkillsAtHand:
    """The usable skills: `drafts` are those whose text was read, `others` the names of the rest."""

    drafts: tuple[SkillDraft, ...] = ()
    others: tuple[str, ...] = ()


async def skills_at_hand(bus: Bus) -> SkillsAtHand | None:
    """Return the usable skills; None if they are unknown."""
    try:
        return await _read(bus)
    except LocalError as error:
        log.warning("the skills are unknown at present: %s", error)
        return None


async def propose_skill(bus: Bus, draft: SkillDraft, by: str) -> bool:
    """Whether a change of a skill waits for the owner now."""
    fields = {"name": draft.name, "description": draft.description, "instructions": draft.instructions, "by": by}
    try:
        request = SkillRequest(verb="propose", **fields)
        found = await bus.request(request, SkillResult, ANSWER_SECONDS, Trace(new_id()))
    except LocalError as error:
        log.warning("no change of the skill %.64a is proposed: %s", draft.name, error)
        return False
    if found.error is not None:
        log.warning("no change of the skill %.64a is proposed: %s", draft.name, found.error.message)
    return found.proposed


async def _read(bus: Bus) -> SkillsAtHand | None:
    found = await bus.request(SkillRequest(verb="ready"), SkillResult, ANSWER_SECONDS, Trace(new_id()))
    if found.error is not None:
        return None
    drafts, others, room = list[SkillDraft](), list[str](), ROOM
    for skill in found.skills:
        shown = await bus.request(
            SkillRequest(verb="show", name=skill.name), SkillResult, ANSWER_SECONDS, Trace(new_id())
        )
        if shown.error is None and len(shown.text) <= min(MOST_CHARS, room):
            room -= len(shown.text)
            body = split_front_matter(Path(skill.name), shown.text).body
            drafts.append(SkillDraft(skill.name, skill.description, body))
        else:
            others.append(skill.name)
    return SkillsAtHand(tuple(drafts), tuple(others))

"""Reflection: routines that dream, think and check goals in the background, in one process with one model."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Self

from local.bus.envelope import Envelope, Trace
from local.bus.message import MAIN_RESPONDENT, ErrorInfo, Message
from local.bus.messages import QueryReceived, ResponseGeneration
from local.core.errors import ConfigError
from local.core.versioned_text import Soul, TextProposals
from local.memory.messages import MemoryDeleted, engram_id
from local.models.leases import Leases
from local.models.router import connect
from local.reflection import prompts as dream_prompt
from local.reflection import prompts as thought_prompt
from local.reflection.goals import Heartbeat
from local.reflection.messages import (
    DreamMade,
    DreamNote,
    GoalRequest,
    GoalResult,
    MonologueThought,
    RoutineRequest,
    RoutineResult,
)
from local.reflection.prompts import Dream
from local.reflection.routine import (
    BackgroundModel,
    BackgroundQuestion,
    RecentExchanges,
    ReflectionConfig,
    Routine,
    RoutineContext,
    RoutineDiary,
    SkillsAtHand,
    propose_skill,
    recent_exchanges,
    skills_at_hand,
)
from local.runtime.participant import Kind, Participant, Resources, on
from local.skills.messages import SkillDraft

# The routine that writes notes on past conversations.

log = logging.getLogger(__name__)

FILE_NAME = "dreams.json"  # in the data directory
MOST_EXCHANGES = 40  # of a dream, the latest
_NAMESPACE = uuid.UUID("b9a0f2d4-6d3e-4a53-9b0b-0f7f3f6f8c11")


class Dreamer(Routine):
    """The routine that writes notes on recent conversations: it reads the owner's exchanges since its last dream,
    without those with untrusted content, and publishes notes on what they have in common.
    """

    name = "dreamer"
    publishes = (
        Routine, DreamMade, "memory.request.list", "skills.request.ready", "skills.request.show",
        "skills.request.propose",
    )  # fmt: skip

    def __init__(self, config: ReflectionConfig, context: RoutineContext, data_dir: Path, settings: Path) -> None:
        """`settings` is the folder of the soul."""
        super().__init__(context, config.dreaming(), RoutineDiary(data_dir, FILE_NAME))
        self._least_exchanges = config.dream_least_exchanges
        self._soul = Soul(settings, data_dir)
        self._proposals = TextProposals(self._soul)

    async def once(self) -> float:
        """Look back once."""
        recent = await recent_exchanges(self.bus, self.state.read_until, MOST_EXCHANGES)
        if len(recent.exchanges) < self._least_exchanges:
            return self.state.read_until
        soul, skills = await asyncio.to_thread(self._soul.text), await skills_at_hand(self.bus)
        question = BackgroundQuestion(
            partial(dream_prompt.messages, recent.exchanges, soul, skills.drafts if skills else ()),
            dream_prompt.SCHEMA,
            partial(dream_prompt.read, exchanges=recent.exchanges),
        )
        dream = await self.ask(question, _came_of)
        if self.has_forgotten(recent.engram_ids):
            return self.state.read_until  # the next dream reads the rest
        proposed = await asyncio.to_thread(self._proposals.propose, dream.soul, self.name)
        skill = await self._propose_skill(dream.skill, skills)
        await self._publish(recent, dream, proposes_soul=proposed, proposes_skill=skill)
        return recent.until

    async def _propose_skill(self, draft: SkillDraft | None, skills: SkillsAtHand | None) -> str:
        """Propose the change of a skill, if there is one; returns the skill's name."""
        if draft is None or skills is None:
            return ""
        if draft.name in skills.others:
            log.warning("no change of the skill %s is proposed: it was not read whole", draft.name)
            return ""
        return draft.name if await propose_skill(self.bus, draft, self.name) else ""

    async def _publish(
        self, recent: RecentExchanges, dream: Dream, *, proposes_soul: bool, proposes_skill: str
    ) -> None:
        dream_id = _id_of(recent)
        notes = [
            DreamNote(
                engram_id=engram_id(f"{dream_id}:{number}", MAIN_RESPONDENT), text=each.text, sources=each.sources
            )
            for number, each in enumerate(dream.seen)
        ]
        made = DreamMade(
            dream_id=dream_id,
            notes=tuple(notes),
            read=len(recent.exchanges),
            left_out=recent.left_out,
            since=self.state.read_until,
            until=recent.until,
            model=self.context.model.name,
            proposes_soul=proposes_soul,
            proposes_skill=proposes_skill,
        )
        await self.bus.publish(made, Trace(dream_id, None, dream_id), envelope_id=dream_id)


def _id_of(recent: RecentExchanges) -> str:
    """Return an id that is the same for the same exchanges, so that a dream repeated after a crash is stored once."""
    return uuid.uuid5(_NAMESPACE, "\n".join(recent.engram_ids)).hex


def _came_of(dream: Dream) -> str:
    count = len(dream.seen)
    return f"{count} {'note' if count == 1 else 'notes'}"


# The routine that thinks about recent events.

MONOLOGUE_FILE = "monologue.json"  # in the data directory
INNER_MONOLOGUE_MOST_EXCHANGES = 10  # for one thought, the latest
_INNER_MONOLOGUE_NAMESPACE = uuid.UUID("1f1d6f0e-6f6a-4b1e-9d55-0a6c0f9f7e21")


class InnerMonologue(Routine):
    """The routine that writes thoughts about recent conversations. Its thoughts are published and used nowhere else:
    no model reads them, and they trigger nothing.
    """

    name = "monologue"
    publishes = (Routine, MonologueThought, "memory.request.list")

    def __init__(self, config: ReflectionConfig, context: RoutineContext, data_dir: Path) -> None:
        super().__init__(context, config.thinking(), RoutineDiary(data_dir, MONOLOGUE_FILE))

    async def once(self) -> float:
        """Think about new exchanges, if there are any."""
        recent = await recent_exchanges(self.bus, self.state.read_until, INNER_MONOLOGUE_MOST_EXCHANGES)
        if recent.exchanges:
            messages = partial(thought_prompt.thought_messages, recent.exchanges)
            question = BackgroundQuestion(messages, thought_prompt.THOUGHT_SCHEMA, thought_prompt.read_thought)
            thought = await self.ask(question, lambda thought: "a thought" if thought else "no thought")
            if thought and not self.has_forgotten(recent.engram_ids):
                await self._publish(recent, thought)
        return recent.until

    async def _publish(self, recent: RecentExchanges, thought: str) -> None:
        """Publish a thought once for the same exchanges, whatever has died in between."""
        thought_id = uuid.uuid5(_INNER_MONOLOGUE_NAMESPACE, "\n".join(recent.engram_ids)).hex
        said = MonologueThought(
            thought_id=thought_id, text=thought, sources=recent.engram_ids, left_out=recent.left_out,
            model=self.context.model.name,
        )  # fmt: skip
        await self.bus.publish(said, Trace(thought_id, None, thought_id), envelope_id=thought_id)


CONSUMER = "reflection"


class Reflection(Participant):
    """The participant that works in the background: it runs each routine when it is due and no user is waiting."""

    name = "reflection"
    kind = Kind.AGENT
    Config = ReflectionConfig
    publishes = (Dreamer, InnerMonologue, Heartbeat)

    def __init__(self, config: ReflectionConfig, context: RoutineContext, data_dir: Path, settings: Path) -> None:
        """`settings` is the folder of the soul."""
        super().__init__(config)
        self._context = context
        self._heartbeat = Heartbeat(config, context, data_dir)
        monologue = InnerMonologue(config, context, data_dir)
        routines: tuple[Routine, ...] = (Dreamer(config, context, data_dir, settings), monologue, self._heartbeat)
        self._routines = {routine.name: routine for routine in routines}

    @classmethod
    def build(cls, config: ReflectionConfig, resources: Resources) -> Self:
        """Build the participant with the model of the role fast. Raises `ConfigError`."""
        routing = resources.routing
        if routing is None:
            raise ConfigError("reflection needs a model server, and none is configured")
        chat = connect(routing, timeout_seconds=config.timeout_seconds, limit="timeout_seconds in reflection.yaml")
        name = routing.first("fast", config.model or routing.first("chat", resources.chat_model))
        leases = Leases(routing.locate)
        model = BackgroundModel(chat, name, leases, config.num_ctx or resources.chat_num_ctx)
        return cls(config, RoutineContext(model), resources.data_dir, resources.layers[-1])

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Let the routines look whether it is their time."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._context.model.chat.close)
            await stack.enter_async_context(self._context.model.leases.are_open(self.bus))
            for routine in self._routines.values():
                await stack.enter_async_context(routine.running(self.bus))
            yield

    @on(QueryReceived)
    async def on_approval_request(self, query: QueryReceived, envelope: Envelope) -> None:
        """Note that a user has asked a question."""
        self._context.silence.broken()

    @on(ResponseGeneration)
    async def on_answer(self, response: ResponseGeneration, envelope: Envelope) -> None:
        """Note that a user's question was answered."""
        self._context.silence.broken()

    @on(RoutineRequest)
    async def answer(self, request: RoutineRequest, envelope: Envelope) -> RoutineResult:
        """Answer a frontend's request about a routine."""
        routine, refused = self._routines[request.routine], ""
        match request.verb:
            case "on" | "off":
                await routine.switch(is_on=request.verb == "on")
            case "now":
                refused = routine.want()
        state = routine.record()
        if request.verb == "now":
            state = state.model_copy(update={"why": refused})
        return RoutineResult(verb=request.verb, state=state)

    @on(GoalRequest)
    async def answer_of_goals(self, request: GoalRequest, envelope: Envelope) -> GoalResult:
        """Answer a frontend's request about goals."""
        return await self._heartbeat.answer(request, envelope.id)

    @on(MemoryDeleted, durable=CONSUMER)
    async def forget(self, deleted: MemoryDeleted, envelope: Envelope) -> None:
        """Remove everything that is based on a deleted exchange."""
        for routine in self._routines.values():
            await routine.forget(deleted.engram_id)

    def error_reply(self, message: Message, error: Exception) -> Message | None:
        """Return the error reply to a failed request."""
        match message:
            case RoutineRequest():
                return RoutineResult(verb=message.verb, error=ErrorInfo.of(error))
            case GoalRequest():
                return GoalResult(verb=message.verb, error=ErrorInfo.of(error))
        return None

    def metrics(self) -> dict[str, int]:
        """Return the number of goals with a remark that the owner has not seen, and the number of remarks."""
        return {"goals_unseen": self._heartbeat.book.unseen(), "goals_said": self._heartbeat.said}

    def details(self) -> dict[str, str]:
        """Return what each routine waits for, and its latest problem."""
        routines = self._routines.items()
        told = {f"{name}_waits_for": routine.waits_for() for name, routine in routines}
        told["problem"] = "; ".join(f"{name}: {routine.problem}" for name, routine in routines if routine.problem)
        return {name: text for name, text in told.items() if text}

"""The agent that thinks on its own while nobody asks anything: its routines share a process and a model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Self

from local.agents.leases import Leases
from local.agents.reflecting.background_model import BackgroundModel
from local.agents.reflecting.dreamer import Dreamer
from local.agents.reflecting.heartbeat import Heartbeat
from local.agents.reflecting.inner_monologue import InnerMonologue
from local.agents.reflecting.reflection_config import ReflectionConfig
from local.agents.reflecting.routine import Routine, RoutineContext
from local.errors import ConfigError
from local.models.backends import connect
from local.protocol.envelope import Envelope
from local.protocol.goal_messages import GoalRequest, GoalResult
from local.protocol.memory_messages import MemoryDeleted
from local.protocol.messages import ErrorInfo, Message, QueryReceived, ResponseGeneration
from local.protocol.reflection_messages import RoutineRequest, RoutineResult
from local.runtime.participant import Kind, Participant, Resources, on

CONSUMER = "reflection"


class Reflection(Participant):
    """Hears when somebody is there, and lets each routine have its time when nobody is."""

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
        """With the model of the role fast. Raises `ConfigError`."""
        routing = resources.routing
        if routing is None:
            raise ConfigError("reflection needs a model server, and none is known here")
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
    async def hear_question(self, query: QueryReceived, envelope: Envelope) -> None:
        """Somebody is there."""
        self._context.silence.broken()

    @on(ResponseGeneration)
    async def hear_answer(self, response: ResponseGeneration, envelope: Envelope) -> None:
        """Somebody was there until now."""
        self._context.silence.broken()

    @on(RoutineRequest)
    async def answer(self, request: RoutineRequest, envelope: Envelope) -> RoutineResult:
        """A door asks how a routine is, or has it do something."""
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
        """A door asks for goals, or wants something done with one."""
        return await self._heartbeat.answer(request, envelope.id)

    @on(MemoryDeleted, durable=CONSUMER)
    async def forget(self, deleted: MemoryDeleted, envelope: Envelope) -> None:
        """Nothing that rests on that exchange is kept, or told from now on."""
        for routine in self._routines.values():
            await routine.forget(deleted.engram_id)

    def error_reply(self, message: Message, error: Exception) -> Message | None:
        """What whoever asked is told when that did not work."""
        match message:
            case RoutineRequest():
                return RoutineResult(verb=message.verb, error=ErrorInfo.of(error))
            case GoalRequest():
                return GoalResult(verb=message.verb, error=ErrorInfo.of(error))
        return None

    def figures(self) -> dict[str, int]:
        """The number of goals of which something was said that the owner has not seen, and how often anything was."""
        return {"goals_unseen": self._heartbeat.book.unseen(), "goals_said": self._heartbeat.said}

    def details(self) -> dict[str, str]:
        """What each routine waits for, and what was wrong with it last."""
        routines = self._routines.items()
        told = {f"{name}_waits_for": routine.waits_for() for name, routine in routines}
        told["problem"] = "; ".join(f"{name}: {routine.problem}" for name, routine in routines if routine.problem)
        return {name: text for name, text in told.items() if text}

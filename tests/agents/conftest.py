"""A generator on an in-process bus, with a model that plays a script and a door that hears everything."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import pytest

from local.agents.generator import GeneratorAgent
from local.agents.generator_config import GeneratorConfig
from local.bus.bus import Bus
from local.bus.memory import MemoryHub
from local.errors import ModelError
from local.models.chat import ContentDelta, Delta, Done, Json, ModelInfo, Usage
from local.protocol.envelope import Envelope, Trace
from local.protocol.messages import AgentTransition, Message, QueryCancel, QueryReceived, ToolSchema
from local.runtime.host import Host
from local.runtime.participant import Participant, Settingless
from local.services.conversation import ConversationService
from local.tools.tool import Tool

M = TypeVar("M", bound=Message)
Item = str | Delta | Exception | asyncio.Event
SECONDS = 20.0  # a test that waits so long has failed


@dataclass(frozen=True)
class Asked:
    """One call of the model."""

    messages: list[Json]
    tools: list[str]
    think: bool
    options: Mapping[str, Any]

    @property
    def query(self) -> str:
        return next(str(message["content"]) for message in reversed(self.messages) if message["role"] == "user")


class ScriptedModel:
    """Says what it was told to say. An event is waited for, an exception raised, text becomes content."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.problem: ModelError | None = None
        self.closed_early = asyncio.Event()
        self._scripts: defaultdict[str, deque[tuple[Item, ...]]] = defaultdict(deque)

    def will_say(self, *items: Item, to: str = "") -> None:
        """The next message; `to` is the query it answers, if any should not do."""
        self._scripts[to].append(items)

    async def chat(
        self,
        model: str,
        messages: Sequence[Json],
        *,
        tools: Sequence[Json] = (),
        think: bool = False,
        options: Mapping[str, Any] | None = None,
    ) -> AsyncGenerator[Delta, None]:
        names = [tool["function"]["name"] for tool in tools]
        asked = Asked([dict(message) for message in messages], names, think, options or {})
        self.asked.append(asked)
        script = self._scripts[asked.query] or self._scripts[""]
        assert script, f"the model was asked once too often: {asked.query}"
        try:
            for item in script.popleft():
                if isinstance(item, asyncio.Event):
                    await item.wait()
                elif isinstance(item, Exception):
                    raise item
                else:
                    yield ContentDelta(item) if isinstance(item, str) else item
            yield Done(Usage(2, 1), model=model)
        except (asyncio.CancelledError, GeneratorExit):
            self.closed_early.set()
            raise

    async def embed(self, model: str, texts: Sequence[str]) -> list[list[float]]:
        raise NotImplementedError

    async def show(self, model: str) -> ModelInfo:
        if self.problem is not None:
            raise self.problem
        return ModelInfo(model, frozenset({"completion", "tools", "thinking"}))

    async def close(self) -> None:
        pass


class Door:
    """Asks, and hears everything that is said on the bus."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.heard: list[Envelope] = []
        self._news = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()
        bus.subscribe("", self._hear)

    async def ask(self, query: str, query_id: str, *, session: str | None = "s", **fields: Any) -> Envelope:
        message = QueryReceived(query_id=query_id, query=query, **fields)
        return await self.bus.publish(message, Trace(query_id, None, session, "user"))

    async def cancel(self, query_id: str) -> None:
        await self.bus.publish(QueryCancel(query_id=query_id), Trace(query_id))

    def of(self, kind: type[M], **fields: Any) -> list[M]:
        """Everything heard so far of a kind, with these values in its fields."""
        return [message for _, message in self._matching(kind, fields)]

    def envelopes(self, kind: type[M], **fields: Any) -> list[Envelope]:
        return [envelope for envelope, _ in self._matching(kind, fields)]

    async def hears(self, kind: type[M], times: int = 1, **fields: Any) -> M:
        """The message that is heard as number `times` of its sort, as soon as it is there."""
        async with asyncio.timeout(SECONDS), self._news:
            await self._news.wait_for(lambda: len(self.of(kind, **fields)) >= times)
        return self.of(kind, **fields)[times - 1]

    def subjects(self, query_id: str) -> list[str]:
        """The subjects of everything that belongs to a query, in order; transitions by the state they lead to."""
        return [
            f"-> {AgentTransition.decode(envelope.payload).to_state}"
            if envelope.subject == AgentTransition.subject
            else envelope.subject
            for envelope in self.heard
            if envelope.correlation_id == query_id
        ]

    def _matching(self, kind: type[M], fields: Mapping[str, Any]) -> list[tuple[Envelope, M]]:
        exact = kind.subject if not kind.family_key else None
        found = [
            (envelope, kind.decode(envelope.payload))
            for envelope in self.heard
            if envelope.subject == exact or (exact is None and envelope.subject.startswith(kind.subject))
        ]
        return [(envelope, message) for envelope, message in found if fields.items() <= dict(message).items()]

    def _hear(self, envelope: Envelope) -> None:
        self.heard.append(envelope)
        task = asyncio.get_running_loop().create_task(self._tell())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _tell(self) -> None:
        async with self._news:
            self._news.notify_all()


class Served:
    """A participant that is being served."""

    def __init__(self, participant: Participant, bus: Bus) -> None:
        self.participant, self.bus = participant, bus
        self._stop = asyncio.Event()
        self._ready = asyncio.Event()
        self._task = asyncio.create_task(Host(participant, bus).run(self._stop, self._ready.set))

    async def ready(self) -> None:
        waiting = asyncio.create_task(self._ready.wait())
        async with asyncio.timeout(SECONDS):
            await asyncio.wait({waiting, self._task}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if self._task.done():
            self._task.result()

    async def stop(self) -> None:
        """As SIGTERM would."""
        self._stop.set()
        async with asyncio.timeout(SECONDS):
            await self._task

    async def kill(self) -> None:
        """As near to `kill -9` as one process can come: no goodbye, nothing finished."""
        self._task.cancel()
        await asyncio.wait({self._task})

    async def end(self) -> None:
        if not self._task.done():
            await self.stop()


class Dice(Tool):
    """Roll a dice."""

    name = "dice"
    repeatable = True

    def __init__(self) -> None:
        super().__init__(Settingless())
        self.rolls: list[int] = []
        self.started = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.may_fall = asyncio.Event()
        self.may_fall.set()

    async def run(self, sides: Annotated[int, "How many sides it has"] = 6) -> str:
        self.rolls.append(sides)
        self.started.set()
        try:
            await self.may_fall.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return f"a {sides - 1} of {sides}"


class Stage:
    """One bus, its door, and whoever is served on it."""

    def __init__(self, hub: MemoryHub, door: Door, database: Path) -> None:
        self.hub, self.door, self.database = hub, door, database
        self.model = ScriptedModel()
        self._served: list[Served] = []

    async def serve(self, participant: Participant, sender: str = "") -> Served:
        served = Served(participant, Bus(sender or participant.name, self.hub.transport()))
        self._served.append(served)
        await served.ready()
        return served

    async def generator(self, **settings: Any) -> Served:
        """A generator on the stage's one file, ready."""
        config = GeneratorConfig(model="gemma", system_prompt="Be brief.", **settings)
        return await self.serve(GeneratorAgent(config, self.model, ConversationService(self.database)))

    async def tool(self, tool: Tool, sender: str = "") -> Served:
        """A tool whose schema everybody has got."""
        before = len(self.door.of(ToolSchema))
        served = await self.serve(tool, sender)
        await self.door.hears(ToolSchema, before + 1)
        return served

    async def end(self) -> None:
        for served in reversed(self._served):
            await served.end()


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    hub = MemoryHub()
    async with AsyncExitStack() as stack:
        bus = await stack.enter_async_context(Bus("door", hub.transport()))
        door = Door(bus)
        await bus.ready()
        made = Stage(hub, door, tmp_path / "conversation.db")
        stack.push_async_callback(made.end)
        yield made


@pytest.fixture
def dice() -> Dice:
    return Dice()

"""The agent that looks back over conversations while nobody asks anything."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Self

from local.agents.dreaming import dream_time
from local.agents.dreaming.dream_diary import DreamDiary, DreamState
from local.agents.dreaming.dreamer_config import DreamerConfig
from local.agents.leases import Leases
from local.errors import ConfigError, LocalError, ModelError
from local.instructions.soul import Soul
from local.instructions.soul_proposal import SoulProposals
from local.models.backends import connect
from local.models.chat import ChatModel, Usage, whole_reply
from local.protocol.dream_messages import DreamMade, DreamNote, DreamRequest, DreamResult
from local.protocol.envelope import Envelope, Trace, new_id
from local.protocol.memory_messages import EngramRecord, MemoryRequest, MemoryResult
from local.protocol.messages import ErrorInfo, Message, QueryReceived, ResponseGeneration
from local.runtime.participant import Kind, Participant, Resources, on
from local.services.dreams import dream_prompt
from local.services.dreams.dream_prompt import Dream, DreamtExchange, Seen
from local.services.engrams.engram import USERS_RESPONDENT, engram_id
from local.services.model_reply import UnreadableReply
from local.tick import until_next_tick

log = logging.getLogger(__name__)

LOOK_SECONDS = 60.0
MEMORY_SECONDS = 20.0
MOST_EXCHANGES = 40  # of a dream, the latest
CALLS = 2  # of the model for one dream
CONTEXT_TOKENS = 32_000  # where nobody says how large the window is
MAX_TOKENS = 1_500  # of a reply
_NAMESPACE = uuid.UUID("b9a0f2d4-6d3e-4a53-9b0b-0f7f3f6f8c11")


@dataclass(frozen=True, slots=True)
class _Reading:
    """The exchanges of a dream, oldest first, and how many were left out."""

    exchanges: tuple[EngramRecord, ...]
    left_out: int

    @property
    def dream_id(self) -> str:
        """The same for the same exchanges, so that a dream that is dreamt again after a crash is one."""
        return uuid.uuid5(_NAMESPACE, "\n".join(each.engram_id for each in self.exchanges)).hex


class Dreamer(Participant):
    """Reads what the memory has of the owner since its last dream, but for what was said beside words of strangers, and
    tells what it has seen. `clock` gives seconds since 1970."""

    name = "dreamer"
    kind = Kind.AGENT
    Config = DreamerConfig
    publishes = (DreamMade, "memory.request.list", Leases)

    def __init__(
        self,
        config: DreamerConfig,
        model: ChatModel,
        model_name: str,
        data_dir: Path,
        settings: Path,
        leases: Leases | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(config)
        self._settings, self._model, self._model_name, self._clock = config, model, model_name, clock
        self._leases, self._diary = leases or Leases(), DreamDiary(data_dir)
        self._soul = Soul(settings, data_dir)
        self._proposals = SoulProposals(self._soul, data_dir)
        self._state = DreamState()
        self._wanted = asyncio.Event()
        self._heard_at = time.monotonic()  # of a question or an answer
        self.problem = ""

    @classmethod
    def build(cls, config: DreamerConfig, resources: Resources) -> Self:
        """With the model of the role fast. Raises `ConfigError`."""
        routing = resources.routing
        if routing is None:
            raise ConfigError("the dreamer needs a model server, and none is known here")
        model = connect(routing, timeout_seconds=config.timeout_seconds)
        name = routing.first("fast", config.model or routing.first("chat", resources.chat_model))
        config = config.model_copy(update={"num_ctx": config.num_ctx or resources.chat_num_ctx})
        leases = Leases(lambda each: routing.locate(each)[0])
        return cls(config, model, name, resources.data_dir, resources.layers[-1], leases)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Look each minute whether it is time."""
        self._state = await asyncio.to_thread(self._diary.read)
        async with self._leases.are_open(self.bus):
            looking = asyncio.create_task(self._look(), name="look whether it is time to dream")
            try:
                yield
            finally:
                looking.cancel()
                await asyncio.wait([looking])
                await self._model.close()

    @on(QueryReceived)
    async def hear_question(self, query: QueryReceived, envelope: Envelope) -> None:
        """Somebody is there."""
        self._heard_at = time.monotonic()

    @on(ResponseGeneration)
    async def hear_answer(self, response: ResponseGeneration, envelope: Envelope) -> None:
        """Somebody was there until now."""
        self._heard_at = time.monotonic()

    @on(DreamRequest)
    async def answer(self, request: DreamRequest, envelope: Envelope) -> DreamResult:
        """A door asks how it is, or has it do something."""
        match request.verb:
            case "on" | "off":
                await self._keep(replace(self._state, is_on=request.verb == "on"))
            case "now":
                if out := dream_time.out_of_tokens(self._state, self._settings, self._clock()):
                    return self._result(request.verb, out)
                self._wanted.set()
                return self._result(request.verb, "")
        return self._result(request.verb, self._waits_for())

    def error_reply(self, message: Message, error: Exception) -> Message | None:
        """What whoever asked is told when that did not work."""
        if not isinstance(message, DreamRequest):
            return None
        info = ErrorInfo.of(error)
        return DreamResult(verb=message.verb, error=info)

    def details(self) -> dict[str, str]:
        """What it waits for, and what was wrong last."""
        told = {"waits_for": self._waits_for(), "problem": self.problem}
        return {name: text for name, text in told.items() if text}

    async def _look(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(until_next_tick(time.monotonic(), LOOK_SECONDS)):
                    await self._wanted.wait()
            if self._waits_for() and not self._wanted.is_set():
                continue
            self._wanted.clear()
            try:
                await self._dream()
            except LocalError as error:
                if str(error) != self.problem:
                    log.warning("no dream for now: %s", error)
                self.problem = str(error)

    def _waits_for(self) -> str:
        idle = time.monotonic() - self._heard_at
        return dream_time.what_it_waits_for(self._state, self._settings, self._clock(), idle)

    async def _dream(self) -> None:
        """Look back once. Raises `LocalError`."""
        reading = await self._reading()
        read_until = self._state.read_until
        if len(reading.exchanges) >= self._settings.least_exchanges:
            soul = await asyncio.to_thread(self._soul.text)
            asked = partial(self._seen, reading, soul)
            dream, usage = await self._leases.in_background(self._model_name, self.name, asked)
            proposed = await asyncio.to_thread(self._proposals.propose, dream.soul, self.name)
            await self._tell(reading, dream.seen, usage, proposes_soul=proposed)
            read_until = reading.exchanges[-1].asked_at
        await self._keep(replace(self._state, read_until=read_until, dreamt_at=self._clock()))
        self.problem = ""

    async def _reading(self) -> _Reading:
        request = MemoryRequest(verb="list", limit=MOST_EXCHANGES)
        result = await self.bus.request(request, MemoryResult, MEMORY_SECONDS, Trace(new_id()))
        if result.error is not None:
            raise DreamFailed(result.error.message)
        fresh = [each for each in result.engrams if each.asked_at > self._state.read_until and each.note_of is None]
        read = tuple(reversed([each for each in fresh if not each.tainted]))
        return _Reading(read, len(fresh) - len(read))

    async def _seen(self, reading: _Reading, soul: str) -> tuple[Dream, Usage]:
        exchanges = [DreamtExchange(each.engram_id, each.query, each.answer) for each in reading.exchanges]
        unread: list[tuple[str, str]] = []
        while True:
            reply, usage = await self._ask(dream_prompt.messages(exchanges, soul, unread))
            tokens = usage.prompt_tokens + usage.completion_tokens
            await self._keep(self._state.spent(tokens, datetime.fromtimestamp(self._clock()).date()))
            try:
                return dream_prompt.read(reply, exchanges), usage
            except UnreadableReply as error:
                unread.append((reply, str(error)))
                if len(unread) == CALLS:
                    raise DreamFailed(f"{self._model_name} has not replied as asked: {error}") from None

    async def _ask(self, messages: list[dream_prompt.Json]) -> tuple[str, Usage]:
        options = {"num_ctx": self._settings.num_ctx or CONTEXT_TOKENS, "temperature": 0, "num_predict": MAX_TOKENS}
        return await whole_reply(
            self._model.chat(self._model_name, messages, options=options, format=dream_prompt.SCHEMA)
        )

    async def _tell(self, reading: _Reading, seen: Sequence[Seen], usage: Usage, *, proposes_soul: bool) -> None:
        dream_id = reading.dream_id
        notes = [
            DreamNote(
                engram_id=engram_id(f"{dream_id}:{number}", USERS_RESPONDENT), text=each.text, sources=each.sources
            )
            for number, each in enumerate(seen)
        ]
        made = DreamMade(
            dream_id=dream_id,
            notes=tuple(notes),
            read=len(reading.exchanges),
            left_out=reading.left_out,
            since=self._state.read_until,
            until=reading.exchanges[-1].asked_at,
            model=self._model_name,
            prompt_tokens=usage.prompt_tokens,
            answer_tokens=usage.completion_tokens,
            proposes_soul=proposes_soul,
        )
        await self.bus.publish(made, Trace(dream_id, None, dream_id), envelope_id=dream_id)

    async def _keep(self, state: DreamState) -> None:
        await asyncio.to_thread(self._diary.write, state)
        self._state = state

    def _result(self, verb: str, why: str) -> DreamResult:
        state = self._state
        return DreamResult(
            verb=verb,
            is_on=dream_time.is_on(state, self._settings),
            why=why,
            dreamt_at=state.dreamt_at or None,
            dreamt_until=state.read_until or None,
            tokens_today=state.tokens_on(datetime.fromtimestamp(self._clock()).date()),
            tokens_per_day=self._settings.tokens_per_day,
        )


class DreamFailed(ModelError):
    """A dream that did not come about."""

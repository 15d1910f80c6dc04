"""Has a model look at the exchanges in store, one after the other, in the background."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from functools import partial

from local.agents.leases import Leases
from local.agents.remembering.classification_table import TABLE, Action, State
from local.agents.remembering.records import fact_records
from local.bus.bus import Bus
from local.errors import ModelError, NotOnRecord, StoreFailed
from local.models.chat import ChatModel, ContentDelta
from local.protocol.envelope import Trace
from local.protocol.memory_messages import MemoryClassified
from local.protocol.messages import AgentTransition
from local.runtime.machine import Machine
from local.services.classifying import prompt
from local.services.classifying.grounding import decide
from local.services.classifying.prompt import UnreadableReply, read
from local.services.engrams.engram import Engram
from local.services.engrams.facts import Classified
from local.services.engrams.service import EngramService
from local.services.engrams.words import own_words

log = logging.getLogger(__name__)

CALLS = 3  # of the model for one exchange: the first, and two more where the reply cannot be read
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 300.0
MAX_TOKENS = 1_000  # of a reply; a small model may not find the end by itself


class Classifier:
    """Use `run` as a task. What it has not done when it ends is still in line when the next one begins.

    `signs_as` is the model's name for people where that is another. `told(user_id)` is called when facts of a
    user may have changed. `problem` is the last one there was with the model, empty once it answers.
    """

    def __init__(
        self,
        bus: Bus,
        engrams: EngramService,
        model: ChatModel,
        model_name: str,
        num_ctx: int,
        leases: Leases,
        told: Callable[[str], Awaitable[None]],
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
        *,
        signs_as: str | None = None,
    ) -> None:
        self._bus, self._engrams, self._leases, self._told, self._pause = bus, engrams, leases, told, pause
        self._model, self._model_name, self._signs_as = model, model_name, signs_as or model_name
        self._options = {"num_ctx": num_ctx, "temperature": 0, "num_predict": MAX_TOKENS}
        self._work = asyncio.Event()
        self._subject: Engram | None = None
        self._machine = Machine(TABLE, State.IDLE, self._tell_change)
        self.problem = ""

    def wake(self) -> None:
        """There is something to classify."""
        self._work.set()

    async def run(self) -> None:
        """Work until cancelled. A model or a store that fails is tried again later, with longer and longer pauses."""
        seconds = FIRST_PAUSE
        while True:
            self._work.clear()
            try:
                engram = await self._engrams.unclassified()
                if engram is None:
                    await self._work.wait()
                    continue
                await self._classify(engram)
                seconds = FIRST_PAUSE
            except (ModelError, StoreFailed) as error:
                self._note(error)
                await self._pause(seconds)
                seconds = min(2 * seconds, LONGEST_PAUSE)

    def _note(self, error: ModelError | StoreFailed) -> None:
        if str(error) != self.problem:
            log.warning("exchanges are not classified for now: %s", error)
        self.problem = str(error)

    async def _classify(self, engram: Engram) -> None:
        self._subject = engram
        self._machine.advance(Action.BEGIN)
        try:
            classified, refused = await self._decided(engram)
            self._machine.advance(Action.DECIDE)
            facts = await self._engrams.classify(engram.engram_id, classified)
            self._machine.advance(Action.STORED)
        except NotOnRecord:
            self._machine.advance(Action.FAIL)  # it was deleted meanwhile
            return
        except BaseException:
            self._machine.advance(Action.FAIL)
            raise
        self.problem = ""
        message = MemoryClassified(
            engram_id=engram.engram_id,
            query_id=engram.query_id,
            status="classified" if classified.is_parsed else "unparsed",
            intent=classified.intent,
            entities=classified.entities,
            facts=fact_records(facts),
            refused=refused,
            model=self._signs_as,
        )
        self._bus.post(message, _trace(engram))
        await self._told(engram.user_id)

    async def _decided(self, engram: Engram) -> tuple[Classified, tuple[str, ...]]:
        """What to note of an exchange, and what not, of that which the model says of the user's own words."""
        own = own_words(engram.query)[: prompt.MAX_CHARACTERS]
        if not own:
            return Classified(True, "other"), ()
        slots = list(dict.fromkeys(fact.slot for fact in await self._engrams.facts(engram.user_id)))
        unread: list[tuple[str, str]] = []
        while len(unread) < CALLS:
            asked = partial(self._ask, prompt.messages(own, slots, unread))
            reply = await self._leases.in_background(self._model_name, "classifier", asked)
            try:
                return decide(read(reply), own, slots)
            except UnreadableReply as error:
                unread.append((reply, str(error)))
                self._machine.advance(Action.RETRY)
        return Classified(False), ()

    async def _ask(self, messages: list[prompt.Json]) -> str:
        said: list[str] = []
        stream = self._model.chat(self._model_name, messages, options=self._options, format=prompt.SCHEMA)
        async with aclosing(stream):
            async for delta in stream:
                if isinstance(delta, ContentDelta):
                    said.append(delta.text)
        return "".join(said)

    def _tell_change(self, before: State, action: Action, after: State) -> None:
        assert self._subject is not None, "nothing changes before there is something to classify"
        transition = AgentTransition(
            agent="memory", query_id=self._subject.query_id, from_state=before, action=action, to_state=after
        )
        self._bus.post(transition, _trace(self._subject))


def _trace(engram: Engram) -> Trace:
    """As the answer's own: what is said of it here goes from the record when its query or session does."""
    return Trace(engram.query_id, None, engram.session_id, engram.user_id)

"""What a turn's prompts begin with: instructions, the user's facts, history, and the question with its files."""

from __future__ import annotations

import asyncio
import base64
import logging
import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import date

from local.agents.answering.attached_text import Room, quote
from local.agents.answering.context.prompt_parts import Attached, Summary
from local.agents.answering.generator_config import GeneratorConfig
from local.agents.answering.prompt.prompt_compiler import as_json, system_text
from local.agents.answering.prompt.prompt_inputs import PromptInputs, ToolLine
from local.agents.answering.prompt.prompt_knowledge import PromptKnowledge
from local.agents.answering.prompt.section_table import listed
from local.agents.answering.question import NOT_TOLD, Question
from local.bus.bus import Bus
from local.errors import AttachmentMissing, LocalError, ModelError
from local.instructions.sourced_text import SourcedText
from local.instructions.standing_texts import StandingTexts
from local.models.chat import ChatModel, Json
from local.models.tool_selection import tier_of
from local.protocol.answer_options import DEFAULT_MODEL
from local.protocol.envelope import Trace, new_id
from local.protocol.memory_messages import OWNER, MemoryRequest, MemoryResult
from local.protocol.message import MAIN_RESPONDENT
from local.protocol.messages import AnswerOptions, ParticipantStatus, QueryReceived
from local.protocol.skill_messages import READ_SKILL
from local.runtime.presence import KEPT, Presence
from local.services.attachments.store import AttachmentStore
from local.services.conversation import Past
from local.services.engrams.pinned import presentable

MEMORY_HEADING = "# Your Memory"
FACTS_HEADING = "What the user has told of themselves; use it only where it matters:"
NOTHING = StandingTexts()
SHARE = 0.5  # of the model's window, for all files of a question together

log = logging.getLogger(__name__)

MEMORY = "memory"
ANSWER_SECONDS = 0.5  # that a user's first turn waits for the memory at most
START_SECONDS = 3.0  # that it waits for a memory which is only starting
RETRY_SECONDS = 10.0  # before a memory that did not answer is asked again: each time a turn waits for it


class PromptBuilder:
    """Makes the questions of one respondent's turns. `facts` are what users have pinned, for conversations that are
    ours: one that a caller brings along has its own context."""

    def __init__(
        self,
        settings: GeneratorConfig,
        respondent_id: str,
        files: AttachedFiles,
        facts: KnownFacts,
        known: PromptKnowledge,
        default: Callable[[], str] | None = None,
    ) -> None:
        """`default` names the model that answers where nobody chooses one; it is that of the settings if not given."""
        self._settings, self._respondent_id = settings, respondent_id
        self._default = default or (lambda: settings.model)
        self._files, self._facts, self._known = files, facts, known
        self._workspace = str(known.texts.workspace) if known.texts else ""
        self._limits = settings.limits
        self._role = SourcedText(settings.prompt_origin, settings.instructions)

    def is_current(self, user_id: str | None) -> bool:
        """Whether nobody has to be asked for what a prompt of that user is made of."""
        reads_skills = READ_SKILL in self._known.offered()
        return self._facts.are_current(user_id) and (not reads_skills or self._known.skills.are_current)

    def prelude(self, history: Sequence[Json], today: date, user_id: str | None) -> tuple[Json, ...]:
        """What the model gets before a question of that user, by what is known now."""
        texts = self._known.written(user_id)
        return compose(self._inputs(today, user_id, None, texts), history, self._facts.known(user_id))

    def shown(self, today: date, user_id: str | None, options: AnswerOptions | None) -> Json:
        """The system prompt of a query that is asked so, section by section."""
        texts = self._known.written(user_id)
        inputs = self._inputs(today, user_id, options, texts)
        return {**as_json(self._model_of(options), inputs), "problems": texts.problems}

    async def question(self, asked: QueryReceived, past: Past, today: date, user_id: str | None) -> Question:
        """Everything that the turn's prompts begin with. Raises `AttachmentMissing`; `ModelError` for pictures that no
        model can see."""
        options = asked.options
        model = self._model_of(options, past.model)
        attached = await self._files.read(asked.attachments, asked.query, model)
        if attached.images:
            own = self._settings.vision_model or self._default()
            model = await self._files.seeing((own,) if model == self._default() else (model, own))
        is_known = asked.history is None or (options is not None and options.remember)
        facts = await self._facts.current(user_id) if is_known else ()
        summary = Summary() if past.summary is None else Summary.from_json(past.summary)
        if READ_SKILL in self._known.offered():
            await self._known.skills.settled()
        texts = await self._texts(user_id) if is_known else NOTHING
        inputs = self._inputs(today, user_id, options, texts, past.model)
        return Question(
            query_id=asked.query_id,
            respondent_id=self._respondent_id,
            query=asked.query,
            prelude=compose(inputs, past.history, facts),
            think=self._settings.think if options is None or options.think is None else options.think,
            limits=self._limits.of_agent(asked.task),
            summary=summary,
            attached=attached,
            prompt=self._settings.prompt,
            profile=options.profile.name if options is not None and options.profile is not None else "",
            incognito=asked.incognito,
            in_history=asked.history is None,
            options=options,
            continued=asked.continued,
            tainted=past.tainted or summary.tainted or bool(asked.attachments) or _is_tainted(asked),
            private=(*facts, *filter(None, [attached.text, *private_texts(inputs)]), *_words_of_models(asked)),
            task=asked.task,
            origin=asked.origin,
            own_words=not asked.tainted,
            notes=(NOT_TOLD,) if is_known and self._facts.are_missing(user_id) else (),
            model=model,
        )

    def _model_of(self, options: AnswerOptions | None, remembered: str | None = None) -> str:
        """What the query names, else what was chosen for its conversation, else what its profile says. A second
        respondent has a model of its own, whatever these are."""
        if self._respondent_id != MAIN_RESPONDENT:
            return self._settings.model
        named = options.model if options is not None else None
        if named == DEFAULT_MODEL:
            return self._default()
        of_profile = options.profile.model if options is not None and options.profile is not None else None
        return named or (remembered if remembered != DEFAULT_MODEL else None) or of_profile or self._default()

    async def _texts(self, user_id: str | None) -> StandingTexts:
        files = self._known.texts
        if files is None or (user_id or OWNER) != OWNER:  # they are the owner's, and tell of the owner
            return NOTHING
        return files.texts if files.is_current else await asyncio.to_thread(files.current)

    def _inputs(
        self,
        today: date,
        user_id: str | None,
        options: AnswerOptions | None,
        texts: StandingTexts,
        remembered: str | None = None,
    ) -> PromptInputs:
        profile = options.profile if options is not None else None
        offered = [tool for tool in self._known.offered().values() if options is None or options.offers(tool.tool)]
        reads_skills = any(tool.tool == READ_SKILL for tool in offered)
        return PromptInputs(
            role=self._role,
            today=today,
            tier=tier_of(self._model_of(options, remembered)),
            tools=tuple(map(ToolLine.of, offered)),
            mode=(options.mode if options else None) or self._known.mode(),
            workspace=self._workspace,
            instructions=texts.instructions,
            soul=texts.soul,
            custom=SourcedText(f"profile {profile.name}", profile.instructions) if profile else None,
            skills=self._known.skills.known(user_id) if reads_skills else (),
        )


def compose(inputs: PromptInputs, history: Sequence[Json], facts: Sequence[str] = ()) -> tuple[Json, ...]:
    """The system message, the memory and the history. The memory is a system message of its own, made of the session's
    `facts`, which must be the user's own words; one that a caller's history has brought along gives way to it. A
    caller's own system messages come after ours."""
    memory = memory_message(facts)
    if memory:
        history = [message for message in history if not is_memory(message)]
    return ({"role": "system", "content": system_text(inputs)}, *memory, *history)


def _is_tainted(asked: QueryReceived) -> bool:
    """Whether its words are not the user's own, or words of strangers were before the model that asks an agent."""
    return asked.tainted or (asked.task is not None and asked.task.tainted)


def _words_of_models(asked: QueryReceived) -> tuple[str, ...]:
    """What models have said in a query that an agent was asked: all of it."""
    if asked.task is None:
        return ()
    return (asked.query, *(str(each.get("content") or "") for each in asked.history or ()))


def memory_message(facts: Sequence[str]) -> tuple[Json, ...]:
    """What the model is told of the user's facts; nothing without any."""
    return ({"role": "system", "content": f"{MEMORY_HEADING}\n{listed(FACTS_HEADING, facts)}"},) if facts else ()


def is_memory(message: Json) -> bool:
    """Whether a message of a conversation is one that told of the user's facts."""
    return message.get("role") == "system" and str(message.get("content") or "").startswith(MEMORY_HEADING)


def private_texts(inputs: PromptInputs) -> tuple[str, ...]:
    """What the prompt has that is the user's own: none of it is for anybody else to read."""
    own = (*inputs.instructions, *filter(None, (inputs.soul, inputs.custom)))
    return (*(text.text for text in own), *filter(None, [inputs.workspace]))


class AttachedFiles:
    """Reads what queries name; without a store there is nothing to name. `room_of` tells how much room a model has."""

    def __init__(self, store: AttachmentStore | None, model: ChatModel, room_of: Callable[[str], Room]) -> None:
        self._store, self._model, self._room_of = store, model, room_of

    async def read(self, ids: Sequence[str], query: str, model: str) -> Attached:
        """The attachments with these ids, for a question that this model answers. Raises `AttachmentMissing`."""
        if not ids:
            return Attached()
        if self._store is None:
            raise AttachmentMissing(ids[0])
        return await asyncio.to_thread(self._read, self._store, ids, query, self._room_of(model))

    def _read(self, store: AttachmentStore, ids: Sequence[str], query: str, room: Room) -> Attached:
        files = [store.read(attachment_id) for attachment_id in dict.fromkeys(ids)]
        images = tuple(base64.b64encode(data).decode() for file, data in files if file.is_picture)
        return Attached(quote([file for file, _ in files], query, room), images)

    async def seeing(self, models: Sequence[str]) -> str:
        """The first of these models that can look at pictures, else the last one of which nobody knows whether it can.
        Raises `ModelError` if none of them can."""
        unknown = ""
        for name in models:
            capabilities = (await self._model.show(name)).capabilities
            if "vision" in capabilities:
                return name
            unknown = unknown if capabilities else name  # some servers do not say what a model can do
        if unknown:
            return unknown
        text = f"{models[-1]} cannot look at pictures; name a model that can, such as ollama/gemma4:12b"
        raise ModelError(f"{text}, for the role vision in models.yaml", kind="unsupported")


class KnownFacts:
    """Each user's lines as the memory last answered. It is asked at a user's first turn, when it says that they have
    changed, and if it may have said so unheard. A turn waits for one that lives, and a user's first for one to come."""

    publishes = ("memory.request.facts",)

    def __init__(
        self, ask: Callable[[str], Awaitable[Sequence[str] | None]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`ask(user)` has the lines from the memory, None if it does not say before a user would notice the wait."""
        self._ask, self._clock = ask, clock
        self._lines: dict[str, tuple[str, ...]] = {}
        self._ask_at: dict[str, float] = {}  # when a user's lines are to be had anew, infinite where they are current
        self._changes: Counter[str] = Counter()  # that were heard of, by user
        self._presence, self._memory, self._is_coming = Presence(MEMORY, clock), "", False

    async def changed(self, user: str) -> None:
        """The memory says that a user's lines have changed: they are had anew at once, before a turn needs them."""
        self._changes[user] += 1
        self._ask_at.pop(user, None)
        await self._ask_for(user)

    def heard(self, status: ParticipantStatus) -> None:
        """A participant lives. A memory that was started anew is asked again."""
        if status.children:
            self._is_coming = any(child.name == MEMORY and child.state in KEPT for child in status.children)
        if self._presence.heard(status) and status.instance != self._memory:
            self._memory = status.instance
            self.ask_again()

    def ask_again(self) -> None:
        """Something may not have been heard. What is known counts until there is an answer."""
        self._ask_at.clear()

    def known(self, user_id: str | None) -> tuple[str, ...]:
        """A user's lines without asking."""
        return self._lines.get(user_id or OWNER, ())

    def are_current(self, user_id: str | None) -> bool:
        """Whether nobody has to be asked for a user's lines."""
        is_to_be_had = self._presence.lives or self.are_missing(user_id)
        return self._clock() < self._ask_at.get(user_id or OWNER, -math.inf) or not is_to_be_had

    def are_missing(self, user_id: str | None) -> bool:
        """Whether there is a memory, and it has never said what this user has pinned."""
        return (user_id or OWNER) not in self._lines and (self._presence.lives or self._is_coming)

    async def current(self, user_id: str | None) -> tuple[str, ...]:
        """A user's lines; what is known, or nothing, where the memory does not say."""
        user = user_id or OWNER
        if not self.are_current(user):
            await self._presence.lives_within(START_SECONDS)
            await self._ask_for(user)
        return self.known(user)

    async def _ask_for(self, user: str) -> None:
        changes = -1
        while changes != self._changes[user]:  # an answer that a change has overtaken is none
            changes = self._changes[user]
            lines = await self._ask(user)
        if lines is None:
            self._ask_at[user] = self._clock() + RETRY_SECONDS
        else:
            self._lines[user] = presentable(lines)
            self._ask_at[user] = math.inf


async def ask_memory(bus: Bus, user: str) -> Sequence[str] | None:
    """What the memory says that a user has pinned; None if it does not say."""
    request, trace = MemoryRequest(verb="facts"), Trace(new_id(), user_id=user)
    try:
        result = await bus.request(request, MemoryResult, ANSWER_SECONDS, trace)
    except LocalError as error:
        log.warning("what the user has pinned is not known now: %s", error)
        return None
    return None if result.error else result.lines

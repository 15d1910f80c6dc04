"""What a turn's prompts begin with: instructions, history, and the question with its block of context."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable, Sequence
from datetime import date

from local.agents.answering.attached_text import Room, quote
from local.agents.answering.context.prompt_parts import Attached, Exchange, Parts, Summary
from local.agents.answering.generator_config import GeneratorConfig
from local.agents.answering.known_facts import FactLines, KnownFacts, recalled_item, shortened
from local.agents.answering.prompt.prompt_compiler import as_json, environment_items, system_text
from local.agents.answering.prompt.prompt_inputs import PromptInputs, ToolLine
from local.agents.answering.prompt.prompt_knowledge import PromptKnowledge
from local.agents.answering.question import NOT_TOLD, Question
from local.errors import AttachmentMissing
from local.instructions.sourced_text import SourcedText
from local.instructions.standing_texts import StandingTexts
from local.models.chat import ChatModel, Json
from local.models.sight import cannot_see, is_blind
from local.protocol.answer_options import DEFAULT_MODEL
from local.protocol.context_block import Context, ContextItem
from local.protocol.conversation_messages import RecalledExchange
from local.protocol.memory_messages import OWNER, RecalledEngram
from local.protocol.message import MAIN_RESPONDENT
from local.protocol.messages import AnswerOptions, QueryReceived
from local.protocol.skill_messages import READ_SKILL
from local.services.attachments.store import AttachmentStore
from local.services.conversation import Past

MEMORY_MISSING = "The memory does not answer now, so facts of the user may be missing here."
NOTHING = StandingTexts()
SHARE = 0.5  # of the model's window, for all files of a question together

Hits = tuple[RecalledEngram, ...]
Recall = Callable[[str, int, str | None, str | None], Awaitable[Hits]]


async def recall_nothing(query: str, limit: int, user_id: str | None, session_id: str | None) -> Hits:
    """Where there is no memory."""
    return ()


class PromptBuilder:
    """Makes the questions of one respondent's turns. Facts of the user and exchanges that `recall` finds are for
    conversations that are ours: one that a caller brings along has its own context."""

    def __init__(
        self,
        settings: GeneratorConfig,
        respondent_id: str,
        files: AttachedFiles,
        facts: KnownFacts,
        known: PromptKnowledge,
        recall: Recall = recall_nothing,
        default: Callable[[], str] | None = None,
    ) -> None:
        """`recall(query, limit, user_id, session_id)` finds exchanges of the user's other sessions. `default` names the
        model that answers where nobody chooses one; it is that of the settings if not given."""
        self._recall = recall
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
        return compose(self._inputs(today, user_id, None, self._known.written(user_id), self._model_of(None)), history)

    def shown(self, today: date, user_id: str | None, options: AnswerOptions | None) -> Json:
        """The system prompt of a query that is asked so, section by section."""
        texts = self._known.written(user_id)
        model = self._model_of(options)
        inputs = self._inputs(today, user_id, options, texts, model)
        return {**as_json(model, inputs), "problems": texts.problems}

    async def question(
        self, asked: QueryReceived, past: Past, today: date, user_id: str | None, session_id: str | None = None
    ) -> Question:
        """Everything that the turn's prompts begin with. Raises `AttachmentMissing`; `ModelError` for pictures that no
        model can see."""
        options = asked.options
        model = self._model_of(options, past.model)
        is_ours = asked.history is None or (options is not None and options.remember)
        is_known = is_ours and not asked.incognito and asked.task is None
        recalling = asyncio.create_task(self._recalled(asked, past, user_id, session_id)) if is_known else None
        try:
            attached = await self._files.read(asked.attachments, asked.query, model)
            if attached.images:
                own = self._settings.vision_model or self._default()
                model = await self._files.seeing((own,) if model == self._default() else (model, own))
            facts = await self._facts.current(user_id) if is_known and self._settings.tell_facts else None
            if READ_SKILL in self._known.offered():
                await self._known.skills.settled()
            texts = await self._texts(user_id) if is_ours else NOTHING
            hits = await recalling if recalling is not None else ()
        finally:
            if recalling is not None:
                recalling.cancel()
        await self._known.sizes.ask(model)
        inputs = self._inputs(today, user_id, options, texts, model)
        summary = Summary() if past.summary is None else Summary.from_json(past.summary)
        prelude = compose(inputs, past.history)
        context = self._context(asked, inputs, facts, hits, attached, user_id)
        beginning = Parts.beginning(prelude, asked.query, summary, attached, context=context, sent=past.sent)
        known = (item.text for item in (*context.items, *_said(beginning.exchanges)) if item.kind in _PRIVATE)
        is_tainted = past.tainted or summary.tainted or bool(asked.attachments) or _is_tainted(asked)
        return Question(
            query_id=asked.query_id,
            respondent_id=self._respondent_id,
            query=asked.query,
            prelude=prelude,
            beginning=beginning,
            think=self._settings.think if options is None or options.think is None else options.think,
            limits=self._limits.of_agent(asked.task),
            summary=summary,
            attached=attached,
            recalled=tuple(map(_as_told, hits)),
            prompt=self._settings.prompt,
            profile=options.profile.name if options is not None and options.profile is not None else "",
            incognito=asked.incognito,
            in_history=asked.history is None,
            options=options,
            continued=asked.continued,
            tainted=is_tainted or any(hit.tainted for hit in hits),
            private=(*dict.fromkeys([*known, *filter(None, private_texts(inputs))]), *_words_of_models(asked)),
            task=asked.task,
            origin=asked.origin,
            own_words=not asked.tainted,
            notes=(NOT_TOLD,) if self._lacks_facts(facts, user_id) else (),
            model=model,
        )

    async def _recalled(self, asked: QueryReceived, past: Past, user_id: str | None, session_id: str | None) -> Hits:
        """Exchanges that fit the question and are not in this conversation already, as in a branch of theirs."""
        most = self._settings.recall_exchanges
        if not most or not self._facts.memory_lives or not asked.query.strip():
            return ()
        hits = await self._recall(asked.query, most, user_id, session_id)
        said = {str(each.get("content") or "").strip() for each in past.history}
        return tuple(hit for hit in hits if hit.query.strip() not in said)

    def _lacks_facts(self, facts: FactLines | None, user_id: str | None) -> bool:
        return facts is not None and self._facts.are_missing(user_id)

    def _context(
        self,
        asked: QueryReceived,
        inputs: PromptInputs,
        facts: FactLines | None,
        hits: Hits,
        attached: Attached,
        user_id: str | None,
    ) -> Context:
        """What the block before the question would say if nothing had been said in this conversation."""
        items = list(environment_items(inputs))
        whole = {"skill"} if any(tool.name == READ_SKILL for tool in inputs.tools) else set()
        if facts is not None:
            items += facts.as_items()
            whole |= {"fact"} if self._facts.is_known(user_id) else set()
        items += map(recalled_item, hits)
        if self._lacks_facts(facts, user_id):
            items.append(ContextItem(kind="note", key="memory", text=MEMORY_MISSING))
        if attached.text:
            items.append(ContextItem(kind="file", key=asked.query_id, text=attached.text))
        return Context(tuple(items), frozenset(whole))

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
        model: str,
    ) -> PromptInputs:
        profile = options.profile if options is not None else None
        offered = [tool for tool in self._known.offered().values() if options is None or options.offers(tool.tool)]
        reads_skills = any(tool.tool == READ_SKILL for tool in offered)
        return PromptInputs(
            role=self._role,
            today=today,
            tier=self._known.sizes.tier(model),
            tools=tuple(map(ToolLine.of, offered)),
            mode=(options.mode if options else None) or self._known.mode(),
            workspace=self._workspace,
            instructions=texts.instructions,
            soul=texts.soul,
            custom=SourcedText(f"profile {profile.name}", profile.instructions) if profile else None,
            skills=self._known.skills.known(user_id) if reads_skills else (),
        )


_PRIVATE = ("fact", "recalled", "file")  # kinds of items: words of the user's, or for the user's eyes


def compose(inputs: PromptInputs, history: Sequence[Json]) -> tuple[Json, ...]:
    """The system message and the history. A caller's own system messages come after ours, in the same message, as the
    templates of many models take only one."""
    theirs = [str(each.get("content") or "") for each in history if each.get("role") == "system"]
    others = [each for each in history if each.get("role") != "system"]
    content = "\n\n".join(filter(None, [system_text(inputs), *theirs]))
    return ({"role": "system", "content": content}, *others)


def _said(exchanges: Sequence[Exchange]) -> list[ContextItem]:
    return [item for exchange in exchanges for item in exchange.said]


def _as_told(hit: RecalledEngram) -> RecalledExchange:
    return RecalledExchange(
        engram_id=hit.engram_id,
        query=shortened(hit.query),
        answer=shortened(hit.answer),
        asked_at=hit.asked_at,
        origin=hit.origin,
        tainted=hit.tainted,
    )


def _is_tainted(asked: QueryReceived) -> bool:
    """Whether its words are not the user's own, or words of strangers were before the model that asks an agent."""
    return asked.tainted or (asked.task is not None and asked.task.tainted)


def _words_of_models(asked: QueryReceived) -> tuple[str, ...]:
    """What models have said in a query that an agent was asked: all of it."""
    if asked.task is None:
        return ()
    return (asked.query, *(str(each.get("content") or "") for each in asked.history or ()))


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
            info = await self._model.show(name)
            if "vision" in info.capabilities:
                return name
            unknown = unknown if is_blind(info) else name  # some servers do not say what a model can do
        if unknown:
            return unknown
        raise await cannot_see(models[-1], getattr(self._model, "seeing", None))  # a router knows other models

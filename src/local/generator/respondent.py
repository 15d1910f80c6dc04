"""The respondent: answers queries with a model as orchestrator and tools on the bus, one turn for each query."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Any, ClassVar, Self

from local.bus.envelope import Envelope
from local.bus.message import ErrorInfo
from local.bus.messages import BusDead, ParticipantStatus, QueryReceived, ToolResult, ToolSchema, ToolSchemaRequest
from local.bus.vocabulary import CLARIFICATION, PROPOSE_PLAN
from local.core.attachments import AttachmentStore
from local.core.errors import ConfigError, ModelError
from local.core.owner_texts import StandingTextFiles
from local.core.routing import Routing
from local.core.versioned_text import soul_history
from local.critic.messages import RewardEvent
from local.generator.config import GeneratorConfig
from local.generator.fitting import PromptFitter
from local.generator.history import END, ConversationService, NewTurn, PriorContext, StoredTurn, TaintRecord
from local.generator.known_facts import FactsCache, Recalls, ask_kinds, ask_memory
from local.generator.output import OutcomePublisher, TurnOutput, trace_of
from local.generator.permissions import PermissionClient
from local.generator.prompt import ATTACHMENTS_SHARE as SHARE
from local.generator.prompt import AttachedFiles, PromptBuilder, PromptKnowledge, SkillIndex, ask_for_skills, fitting
from local.generator.queue import SessionQueue, Speculations, TurnQueue
from local.generator.runner import TurnRunner
from local.generator.running_reward import RunningReward
from local.generator.short_schemas import wants_questions
from local.generator.steps import TurnInput, parse_step
from local.generator.taint import TurnTaint
from local.generator.tool_calls import TurnContext
from local.generator.tool_list import MOST, OfferRules, ToolListRecord, TurnOffer, kind_of
from local.generator.tool_registry import ToolRegistry
from local.generator.turn import SideEffectPolicy, Turn
from local.memory.messages import MemoryRecalled, UserFacts
from local.models.chat import ChatModel, ModelInfo
from local.models.leases import Leases, Priority, purpose_of
from local.models.router import Router, connect
from local.models.settings import DefaultModel, ModelSizes, Tier
from local.permissions.messages import ApprovalRequest
from local.runtime.participant import Kind, Participant, Publications, Resources, on
from local.runtime.runner import SILENT_SECONDS
from local.skills.messages import READ_SKILL, SkillsChanged

# The differences between respondents.


@dataclass(frozen=True, slots=True)
class RespondentPolicy:
    """The differences between respondents: its id, the file of its record in the data directory, the `purpose` of its
    turns if no user waits for them, whether its model is loaded at the start, and whether the configured model is its
    own, which is then never replaced by another.
    """

    respondent_id: str
    record: str
    purpose: str = ""
    loads_model: bool = True
    has_own_model: bool = False

    def texts(self, resources: Resources, window: int) -> StandingTextFiles | None:
        """Return the owner's texts for the prompts; the main respondent keeps the versions of the soul."""
        if not resources.layers:
            return None
        history = None if self.has_own_model else soul_history(resources.data_dir)
        fit = partial(fitting, window=window)
        return StandingTextFiles(resources.layers[-1], resources.workspace_folder, fit, history)

    def model(self, config: GeneratorConfig, resources: Resources, routing: Routing) -> str:
        """Return the name of the model that answers. Raises `ConfigError` if there is none."""
        if not self.has_own_model or config.model == resources.chat_model:
            return routing.first("chat", config.model)
        routing.locate(config.model)
        return config.model


# Looks at an agent's model when the agent starts, and has it loaded, so that the first query need not wait; looks
# again while there is a problem with it.

log = logging.getLogger(__name__)


LOOK_AGAIN_SECONDS = 5.0


class WarmUp:
    """The check of the model at its agent's start, and its loading. `details` is the state for the status: load
    (loading, loaded), or the problem.
    """

    def __init__(self, model: ChatModel, name: str, options: Mapping[str, Any]) -> None:
        self._model, self._name, self._options = model, name, options
        self.details: dict[str, str] = {}
        self._has_problem, self._has_answered = asyncio.Event(), asyncio.Event()

    async def watch(self, warm_up: Callable[[], Awaitable[object]]) -> None:
        """`warm_up()`, and again every few seconds and after an answer for as long as there is a problem, until
        cancelled."""
        await warm_up()
        while await self._has_problem.wait():
            self._has_answered.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_AGAIN_SECONDS):
                    await self._has_answered.wait()
            self._has_problem.clear()
            await warm_up()

    def turn_to(self, name: str) -> None:
        """Another model answers from now on: look at that one."""
        self._name = name
        self._has_problem.set()

    def away(self, reason: str) -> None:
        """A call has found out that no model server answers."""
        self._note(reason)

    def answered(self) -> None:
        """A model has answered a call: a problem may be over."""
        self._has_answered.set()

    async def run(self, learn: Callable[[ModelInfo], object]) -> None:
        """Load the model at the start, and log the error that the first query would meet. `learn` receives the server's
        data on the model.
        """
        if not await self.look(learn):
            return
        try:
            self.details = {"load": "loading"}
            await self._model.load(self._name, self._options)
            self.details = {"load": "loaded"}
        except ModelError as error:
            self._warn(str(error))

    async def look(self, learn: Callable[[ModelInfo], object]) -> bool:
        """Pass the server's data on the model to `learn`, without loading it; False if there is no such model."""
        try:
            learn(await self._model.show(self._name))
        except ModelError as error:
            self._warn(str(error))
            return False
        self.details = {}
        return True

    def _warn(self, problem: str) -> None:
        if self.details != {"problem": problem}:
            log.warning("%s", problem)
        self._note(problem)

    def _note(self, problem: str) -> None:
        self.details = {"problem": problem}
        self._has_problem.set()


MEMORY_SECONDS = 60.0  # for the memory to start, and to learn from its examples
LEARNING_SECONDS = 10.0  # that a question waits for this at most
LEARNING_TRIES = 50
KINDS_SECONDS = 1.0  # that a small model's question waits to be told what it asks for
YOUNG_SECONDS = 3.0  # of a process, in which its first turns wait for the tools that there were before it


class Respondent(Participant):
    """The base of participants that answer queries: runs the turns that are on its record. Knows tools by their schemas
    alone."""

    kind = Kind.AGENT
    Config = GeneratorConfig
    policy: ClassVar[RespondentPolicy]
    publishes: ClassVar[Publications] = (
        TurnOutput,
        OutcomePublisher,
        FactsCache,
        SkillIndex,
        Leases,
        ToolSchemaRequest,
    )

    def __init__(
        self,
        config: GeneratorConfig,
        model: ChatModel,
        conversation: ConversationService,
        *,
        answers_as: str | None = None,
        leases: Leases | None = None,
        attachments: AttachmentStore | None = None,
        texts: StandingTextFiles | None = None,
        sizes: ModelSizes | None = None,
        most_tools: Mapping[Tier, int] = MOST,
        default: DefaultModel | None = None,
    ) -> None:
        """`answers_as` is the name to sign with, where it is not the model's that was asked for; `most_tools` how many
        tools a model of each size is offered at most; `default` follows the owner's choice, without it the model of the
        settings answers."""
        super().__init__(config)
        self._settings, self._options, self._answers_as = config, config.model_options, answers_as
        self._model, self._conversation, self._leases = model, conversation, leases or Leases()
        self._attachments, self._skills = attachments, SkillIndex(lambda: ask_for_skills(self.bus))
        self._default = default or DefaultModel(Routing(endpoints={}, default=""), (), config.model)
        self._warm_up = WarmUp(model, self._default.name, self._options)
        self._fitter = PromptFitter(
            model, config.fast_model or config.model, config.num_ctx, conversation, self._leases, config.model
        )
        self._measured = set[str]()  # models with a known window
        self._tools, self._gate = ToolRegistry(), PermissionClient(config.hooks, config.never_called)
        self._recalls = Recalls()
        self._facts = FactsCache(lambda user: ask_memory(self.bus, user))
        files = AttachedFiles(attachments, model, lambda name: partial(self._fitter.of(name).characters, share=SHARE))
        self._sizes = sizes or ModelSizes(model)
        most = {tier: min(most_tools[tier], config.max_offered_tools or sys.maxsize) for tier in Tier}
        self._rules = OfferRules(most, config.offer.add, frozenset(config.offer.remove), config.work_phases)
        self._tool_lists = ToolListRecord(conversation, self.policy.respondent_id)
        self._known = PromptKnowledge(self._offered, self._skills, self._gate.settings_mode, texts, self._sizes)
        self._prompts = PromptBuilder(
            config,
            self.policy.respondent_id,
            files,
            self._facts,
            self._known,
            self._recalls.of,
            lambda: self._default.name,
            self._kinds_of,
        )
        self._learning: asyncio.Task[None] | None = None
        self._side_effects: dict[str, SideEffectPolicy] = {}  # of turns that may not make every call, by query_id
        self._rewards = RunningReward(conversation, self.policy.respondent_id)
        self._speculations = Speculations(conversation, self._runner)
        self._taints = TaintRecord(conversation, self.policy.respondent_id)
        self._news = asyncio.Event()  # a tool has come, or a query was cancelled
        self._outcomes: OutcomePublisher
        self._turns: TurnQueue

    @classmethod
    def build(cls, config: GeneratorConfig, resources: Resources) -> Self:
        """With the models of the roles chat, fast and vision; the conversation is one file. Raises `ConfigError`."""
        routing = resources.routing
        if routing is None:
            raise ConfigError(f"the {cls.name} needs a model server, and none is known here")
        name = cls.policy.model(config, resources, routing)
        model = connect(routing, timeout_seconds=config.timeout_seconds, limit="timeout_seconds in generator.yaml")
        own = {"model": name}
        own["fast_model"] = routing.first("fast", config.fast_model or name)
        if config.vision_model or routing.config.roles.vision:
            own["vision_model"] = routing.first("vision", config.vision_model or name)
        return cls(
            config.model_copy(update=own),
            model,
            ConversationService(resources.data_dir / cls.policy.record, cls.policy.respondent_id),
            answers_as="stand-in" if resources.model_backend == "stand_in" else None,  # which goes by any name
            leases=Leases(routing.locate, model.servers),
            attachments=AttachmentStore(resources.data_dir / "attachments"),
            texts=cls.policy.texts(resources, config.num_ctx),
            sizes=ModelSizes(model, routing.stated_size),
            most_tools={tier: routing.most_tools(tier.value) for tier in Tier},
            default=DefaultModel(routing, () if cls.policy.has_own_model else resources.layers, name),
        )

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Open the record, serve, and at the end hand back the running turns."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._model.close)
            await stack.enter_async_context(self._conversation)
            await self._rewards.by_prompt()
            self._tools.expect(await self._conversation.latest_tools(), time.monotonic() + YOUNG_SECONDS)
            self._outcomes = OutcomePublisher(self.bus, self._conversation)
            line = SessionQueue(self._settings.max_concurrent_turns, self._settings.max_waiting_turns)
            self._turns = TurnQueue(self._conversation, self._outcomes, line, self._prepare, self._news)
            warm_up = self._warm_up.run if self.policy.loads_model else self._warm_up.look
            watching = self._warm_up.watch(partial(warm_up, self._learn_model))
            warming_up = asyncio.create_task(watching, name="warm up")
            stack.callback(warming_up.cancel)
            stack.callback(lambda: self._learning and self._learning.cancel())
            await stack.enter_async_context(self._skills.is_open())
            await stack.enter_async_context(self._leases.are_open(self.bus))
            await stack.enter_async_context(self._fitter.is_open())
            await stack.enter_async_context(self._turns.is_open())
            await stack.enter_async_context(self._speculations.is_open())
            yield

    async def announce(self) -> None:
        """Ask for the tools and for users' facts, because earlier announcements may have been missed."""
        self._facts.ask_again()
        await self.bus.publish(ToolSchemaRequest())

    def hand_back(self) -> None:
        """Leave the turns to the next process."""
        self._speculations.drop_all()
        self._turns.hand_back()

    def metrics(self) -> dict[str, int]:
        """Return the numbers of running, permitted and waiting turns."""
        return self._turns.metrics()

    def details(self) -> dict[str, str]:
        """Return the model that answers, whether it was loaded at the start or its problem, and its rewards."""
        reward = ", ".join(each.in_words() for each in self._rewards.latest)
        more = {"prompt": self._settings.variant, "reward": reward, "instructions": self._known.problems}
        self._follow_choice()
        model = {"model": self._answers_as or self._default.name}
        servers = self._leases.servers.details(self._leases.turns_at)
        return {**model, **servers, **self._warm_up.details, **{name: text for name, text in more.items() if text}}

    @on(ToolSchema)
    async def learn(self, schema: ToolSchema, envelope: Envelope) -> BusDead | None:
        """Register a tool from its schema; results are accepted only from its sender."""
        if not self.may_publish(envelope, ToolResult.subject + schema.tool):
            return self._dead(envelope, "refused_tool", f"{envelope.sender} is not the tool {schema.tool}")
        refusal = self._tools.announce(schema, envelope.sender, envelope.instance, time.monotonic())
        if refusal is None:
            self._news.set()
            self._skills.learn(schema)
            return None
        log.warning("%s", refusal)
        return self._dead(envelope, "refused_tool", refusal)

    @on(ParticipantStatus)
    async def notice(self, status: ParticipantStatus, envelope: Envelope) -> ToolSchemaRequest | None:
        """A participant lives or leaves: a tool, or the memory perhaps."""
        self._facts.update(status)
        self._gate.status(status)
        if status.children:
            self._tools.outages.supervised(status.children)
        if status.kind != Kind.TOOL:
            return None
        sender, instance, now = envelope.sender, envelope.instance, time.monotonic()
        if status.state == "stopping":
            self._tools.left(sender, instance, now)
            return None
        self._tools.outages.note_process(sender, status.child)
        known = self._tools.note_process(sender, instance, now)
        return None if known else ToolSchemaRequest()

    @on(ApprovalRequest)
    async def on_approval_request(self, question: ApprovalRequest, envelope: Envelope) -> None:
        """Note that a person was asked about a call."""
        self._gate.asked(question)

    @on(UserFacts)
    async def on_facts(self, facts: UserFacts, envelope: Envelope) -> None:
        """Fetch a user's facts again after a change."""
        self._speculations.drop_all()
        await self._facts.changed(facts.of_user)

    @on(MemoryRecalled)
    async def on_recalled(self, recalled: MemoryRecalled, envelope: Envelope) -> None:
        """Keep what the memory has found for a query."""
        self._recalls.receive(recalled)

    @on(SkillsChanged)
    async def on_skills_changed(self, changed: SkillsChanged, envelope: Envelope) -> None:
        """Fetch the skills again after a change."""
        self._speculations.drop_all()
        self._skills.ask_again()

    async def _take_reward(self, event: RewardEvent) -> None:
        if event.respondent_id == self.policy.respondent_id:
            await self._rewards.note(event.query_id, event.reward, event.rated_at)
            await self._rewards.by_prompt()

    async def _prepare(self, stored: StoredTurn) -> TurnRunner:
        """Return the runner of a turn: from its beginning, or from its last stored step."""
        computed = await self._speculations.take(stored)
        if computed is not None:
            return computed
        attempt, until = stored.attempt, self._tools.settled_at
        if attempt > 1:
            attempt = await self._conversation.next_attempt(stored.query_id)
            until = time.monotonic() + SILENT_SECONDS
        await self._tools_back(stored, until)
        past: PriorContext | None = stored.beginning
        steps: list[str] = []
        if past is None or attempt > 1:
            past, steps = await self._conversation.beginning(stored)
        return await self._runner(stored, past, steps, attempt)

    async def _runner(
        self, query: NewTurn | StoredTurn, past: PriorContext, steps: Sequence[str] = (), attempt: int = 1
    ) -> TurnRunner:
        self._follow_choice()
        asked = QueryReceived.decode(query.body.encode())
        is_ours = asked.history is None
        if asked.history is not None:
            said = (*asked.history, *asked.continued)
            tainted = await self._taints.is_history_tainted(said, of_agent=asked.task is not None)
            past = PriorContext(None, asked.history, tainted)
        question = await self._prompts.question(asked, past, date.today(), query.user_id)
        turn = Turn(question, [parse_step(step) for step in steps], self._side_effects.get(query.query_id))
        output = TurnOutput(
            self.bus, self._conversation, trace_of(query), self._settings.agent_id,
            query.query_id, self.policy.respondent_id, attempt,
        )  # fmt: skip
        await self._measure(question.model)
        offer = await self._offer_of(query.session_id if is_ours else None, question.model, question, query.user_id)
        purpose = purpose_of(question.origin, question.task)
        conversation = query.session_id if is_ours else _first_words(asked)
        context = self._context(question.model, purpose, offer, query.user_id, conversation)
        record = self._taints.beside(asked, query.session_id, getattr(query, "position", END))
        taint = TurnTaint(turn, self._settings, record, self._attachments)
        return TurnRunner(turn, context, output, query.session_id if is_ours else None, taint)

    async def _offer_of(
        self, session_id: str | None, model_name: str, question: TurnInput, user_id: str | None
    ) -> TurnOffer:
        """The tools that the model of a turn is offered: those of its session, if it is one of ours."""
        tier, options = await self._sizes.ask(model_name), question.options
        kind = kind_of(tier, options)
        wanted = [READ_SKILL] if self._known.skills.known(user_id) else []
        if wants_questions(question.query):
            wanted.append(CLARIFICATION)
        plans = options is not None and options.mode == "plan" and self._gate.may_ask(question)
        return TurnOffer(
            self._rules,
            tier,
            None if session_id is None else self._tool_lists.of(session_id, kind),
            (*wanted, *((PROPOSE_PLAN,) if plans else ())),
            kind,
            is_final=session_id is not None
            and self._sizes.is_known(model_name)
            and self._tools.are_settled(time.monotonic()),
        )

    def _may_compute(self, asked: NewTurn) -> bool:
        """Whether a query's turn can be computed ahead without further requests."""
        return (
            self._offered().keys() >= self._tools.known(time.monotonic())
            and self._turns.may_begin(asked.session_id)
            and self._prompts.is_current(asked.user_id)
        )

    async def _tools_back(self, stored: StoredTurn, until: float) -> None:
        """Wait until a turn has its tools, or is cancelled, or the time has come."""
        with suppress(TimeoutError):
            async with asyncio.timeout(until - time.monotonic()):
                while not self._turns.is_cancelled(stored.query_id) and not self._offered().keys() >= set(stored.tools):
                    self._news.clear()
                    await self._news.wait()

    def _context(
        self, model_name: str, purpose: str, offer: TurnOffer, user_id: str | None, conversation: str
    ) -> TurnContext:
        purpose = self.policy.purpose or purpose
        at = self._leases.at(model_name, conversation, turn=not purpose)
        return TurnContext(
            model=self._model,
            prompts=self._fitter.of(model_name),
            tools=self._tools,
            model_name=model_name,
            answers_as=self._answers_as,
            options=self._options,
            priority=Priority(self._leases, at, purpose, conversation),
            tool_timeout_seconds=self._settings.tool_timeout_seconds,
            max_answer_tokens=self._settings.max_answer_tokens,
            blobs=self.bus.blobs,
            offer=offer,
            user_id=user_id,
            gate=self._gate,
            on_away=self._warm_up.away,
            on_answered=self._warm_up.answered,
        )

    def _offered(self) -> dict[str, ToolSchema]:
        return self._tools.offered(time.monotonic())

    def _follow_choice(self) -> None:
        """The owner may have chosen another default model since."""
        if self._default.refresh():
            log.info("%s answers from now on, as models.yaml says", self._default.name)
            self._warm_up.turn_to(self._default.name)
            if isinstance(self._model, Router):
                self._model.follow(self._default.chain)

    async def _measure(self, model: str) -> None:
        """Fetch the window of a chosen model; the warm-up does so for the model of the start."""
        if model in self._measured or model == self._settings.model:
            return
        with suppress(ModelError):  # the turn's own call reports the error
            info = await self._model.show(model)
            self._fitter.of(model).window.learn(info, self._settings.num_ctx)
            self._measured.add(model)

    def _learn_model(self, info: ModelInfo) -> None:
        self._sizes.learn(self._default.name, info)
        if self._settings.guides(info.parameters):
            self._learning = self._learning or self._learn()
        self._fitter.of(self._default.name).window.learn(info, self._settings.num_ctx)

    def _learn(self) -> asyncio.Task[None]:
        return asyncio.create_task(self._learn_kinds(), name="learn what questions ask for")

    async def _learn_kinds(self) -> None:
        """Have the memory learn from its examples what questions ask for, before the first question comes. It cannot
        before it has chosen its embedding model.
        """
        if not await self._facts.memory_within(MEMORY_SECONDS):
            return
        for _ in range(LEARNING_TRIES):
            if await ask_kinds(self.bus, "Hello!", MEMORY_SECONDS):
                return
            await asyncio.sleep(LEARNING_SECONDS / LEARNING_TRIES)

    async def _kinds_of(self, question: str) -> Mapping[str, float]:
        """Return what a question asks for. The first ones wait until the memory has learned it: without the line a
        small model would answer them badly, and in more time.
        """
        self._learning = self._learning or self._learn()
        await asyncio.wait({self._learning}, timeout=LEARNING_SECONDS)
        return await ask_kinds(self.bus, question, KINDS_SECONDS)

    def _dead(self, envelope: Envelope, kind: str, message: str) -> BusDead:
        error = ErrorInfo(kind=kind, message=message)
        return BusDead(participant=self.name, envelope_id=envelope.id, dead_subject=envelope.subject, error=error)


def _first_words(asked: QueryReceived) -> str:
    """The first message of a user in a conversation that a client keeps: what all its queries have in common."""
    said = (message["content"] for message in asked.history or () if message.get("role") == "user")
    return str(next(said, asked.query))

"""A query from the frontend to its answer: what is on the bus, what the model is asked, and which model it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from local.bus.messages import (
    OWN,
    AgentTransition,
    AnswerDialog,
    AnswerOptions,
    AnswerProfile,
    GenerationThinking,
    GenerationToken,
    GenerationWaiting,
    QueryAccepted,
    QueryFailed,
    ResponseGeneration,
    ToolRequest,
    ToolResult,
)
from local.core.attachments import AttachmentStore
from local.core.errors import ConfigError, ModelError
from local.core.routing import Endpoint, ModelsConfig, Routing
from local.generator import respondent
from local.generator.agent import GeneratorAgent, SecondRespondent
from local.generator.config import GeneratorConfig
from local.generator.history import ConversationService
from local.generator.prompt import date_line
from local.generator.steps import CUT_OFF
from local.models.chat import AwayDelta, ContentDelta, Delta, Done, Json, ModelInfo, ThinkingDelta, ToolCall, Usage
from local.models.settings import DefaultModel
from local.runtime.participant import Resources
from local.tools.tool import Tool, ToolSettings

Until = Callable[[Callable[[], object]], Awaitable[None]]


async def test_a_plain_question_is_answered_and_everything_is_on_the_bus_in_order(stage: Any) -> None:
    await stage.generator(num_ctx=2048, temperature=0.5)
    stage.model.will_say(ThinkingDelta("Easy."), "Forty-", "two")
    asked = await stage.frontend.ask("What is it?", "q1")
    response = await stage.frontend.hears(ResponseGeneration)
    await stage.frontend.hears(AgentTransition, to_state="IDLE")
    assert (response.status, response.answer, response.thinking) == ("answered", "Forty-two", "Easy.")
    told = stage.frontend.subjects("q1")
    told.remove("query.accepted")  # beside the turn, which does not wait for it
    assert told == [
        "query.received",
        "-> RECEIVING",
        "-> GENERATING",
        "generation.thinking",
        "generation.token",
        "-> PUBLISHING",
        "response.generation",
        "answer.dialog",
        "-> IDLE",
    ]
    [answer] = stage.frontend.envelopes(ResponseGeneration)
    assert (answer.cause_id, answer.session_id, answer.user_id, answer.in_reply_to) == (asked.id, "s", "user", None)
    assert stage.frontend.of(AnswerDialog)[0].answer == "Forty-two"
    [call] = stage.model.asked
    assert call.options.items() >= {"num_ctx": 2048, "temperature": 0.5}.items()
    assert 1000 < call.options["num_predict"] < 2048
    assert call.messages[0] == {"role": "system", "content": f"Be brief.\n\n{date_line(date.today())}"}
    assert call.background == []


async def test_fragments_leave_as_they_are_said(stage: Any) -> None:
    await stage.generator()
    more = asyncio.Event()
    stage.model.will_say(ThinkingDelta("Hm"), "One", more, " two")
    await stage.frontend.ask("Count!", "q1")
    assert (await stage.frontend.hears(GenerationThinking)).text == "Hm"
    assert (await stage.frontend.hears(GenerationToken)).text == "One"
    assert stage.frontend.of(ResponseGeneration) == []
    more.set()
    assert (await stage.frontend.hears(ResponseGeneration)).answer == "One two"
    assert [(token.text, token.index) for token in stage.frontend.of(GenerationToken)] == [("One", 1), (" two", 2)]


async def test_a_tool_is_called_over_the_bus_and_its_result_goes_back(stage: Any, dice: Any) -> None:
    await stage.generator()
    await stage.tool(dice)
    for number in (1, 2):
        stage.model.will_say(ThinkingDelta("I roll."), ToolCall("dice", {"sides": 20}))
        stage.model.will_say("A 19.")
        await stage.frontend.ask("Roll!", f"q{number}", session=None)
        await stage.frontend.hears(AgentTransition, number, to_state="IDLE")
    response = stage.frontend.of(ResponseGeneration)[0]
    [record] = response.tool_calls
    assert response.answer == "A 19." and stage.model.asked[0].tools == ["dice"]
    assert (record.call_id, record.tool, record.args, record.result) == ("q1:0:0", "dice", {"sides": 20}, "a 19 of 20")
    assert stage.model.asked[1].messages[2:] == [
        {
            "role": "assistant",
            "content": "",
            "thinking": "I roll.",
            "tool_calls": [{"id": "q1:0:0", "function": {"name": "dice", "arguments": {"sides": 20}}}],
        },
        {"role": "tool", "tool_name": "dice", "tool_call_id": "q1:0:0", "content": "a 19 of 20"},
    ]
    assert stage.frontend.envelopes(ToolResult)[0].in_reply_to == stage.frontend.envelopes(ToolRequest)[0].id
    told = [
        [subject for subject in stage.frontend.subjects(query_id) if not subject.startswith(("query", "generation"))]
        for query_id in ("q1", "q2")
    ]
    assert told[0] == told[1]  # the first request to a tool, for which the bus has to subscribe, is no different
    assert told[1] == [
        "-> RECEIVING",
        "-> GENERATING",
        "tool.request.dice",
        "-> DISPATCHING_TOOL",  # published with the next one, which follows at once
        "-> WAITING_FOR_TOOL",
        "tool.result.dice",
        "-> GENERATING",
        "-> PUBLISHING",
        "response.generation",
        "answer.dialog",
        "-> IDLE",
    ]


async def test_calls_of_one_message_run_side_by_side_and_one_that_came_as_text_is_made(stage: Any, dice: Any) -> None:
    await stage.generator()
    await stage.tool(dice)
    dice.may_fall.clear()
    stage.model.will_say(ToolCall("dice", {"sides": 4}), ToolCall("dice", {"sides": 6}))
    stage.model.will_say('{"name": "dice", "arguments": {"sides": 8}}')
    stage.model.will_say("All.")
    await stage.frontend.ask("Roll!", "q1")
    await stage.frontend.hears(ToolRequest, 2)
    await stage.frontend.hears(AgentTransition, to_state="WAITING_FOR_TOOL")
    dice.may_fall.set()
    response = await stage.frontend.hears(ResponseGeneration)
    assert [record.result for record in response.tool_calls] == ["a 3 of 4", "a 5 of 6", "a 7 of 8"]
    assert response.degraded == ("the call of dice came as text",)


async def test_a_query_that_brings_its_history_or_has_no_session_uses_and_leaves_no_other(stage: Any) -> None:
    await stage.generator()
    history = ({"role": "user", "content": "Elsewhere"},)
    for query, fields in (
        ("First", {}),
        ("Second", {"history": history}),
        ("Third", {}),
        ("Alone", {"session": None}),
    ):
        stage.model.will_say(f"{query}.")
        await stage.frontend.ask(query, query, **fields)
        await stage.frontend.hears(ResponseGeneration, query_id=query)
    said = [[message["content"] for message in asked.messages[1:]] for asked in stage.model.asked]
    assert said == [["First"], ["Elsewhere", "Second"], ["First", "First.", "Third"], ["Alone"]]


async def test_sessions_are_answered_side_by_side_and_one_session_in_order(stage: Any) -> None:
    await stage.generator()
    slow = asyncio.Event()
    stage.model.will_say(slow, "one", to="first of red")
    stage.model.will_say("two", to="second of red")
    stage.model.will_say("three", to="first of green")
    await stage.frontend.ask("first of red", "r1", session="red")
    await stage.frontend.ask("second of red", "r2", session="red")
    await stage.frontend.ask("first of green", "g1", session="green")
    assert (await stage.frontend.hears(ResponseGeneration)).answer == "three"
    await stage.frontend.hears(QueryAccepted, query_id="r2")
    assert [asked.query for asked in stage.model.asked] == ["first of red", "first of green"]
    slow.set()
    await stage.frontend.hears(ResponseGeneration, 3)
    assert [response.query_id for response in stage.frontend.of(ResponseGeneration)] == ["g1", "r1", "r2"]


async def test_an_answer_that_reached_its_limit_is_cut_off_and_says_so(stage: Any) -> None:
    await stage.generator(max_answer_tokens=300)
    stage.model.will_say("And so on and", Done(Usage(2, 300), reason="length"))
    await stage.frontend.ask("Count!", "q1")
    response = await stage.frontend.hears(ResponseGeneration)
    assert (response.answer, response.cut_off, response.degraded) == ("And so on and", True, (CUT_OFF,))
    assert stage.model.asked[0].options["num_predict"] == 300


# What a program may want of one answer.

WEATHER: Json = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
TIME: Json = {"type": "function", "function": {"name": "time", "parameters": {"type": "object", "properties": {}}}}


async def answer(stage: Any, query_id: str, *said: Any, **fields: Any) -> ResponseGeneration:
    """A query of a program that keeps its conversation itself."""
    for message in said:
        stage.model.will_say(*message) if isinstance(message, list) else stage.model.will_say(message)
    await stage.frontend.ask("How is the weather in Oslo?", query_id, session=None, history=(), **fields)
    response: ResponseGeneration = await stage.frontend.hears(ResponseGeneration, query_id=query_id)
    return response


async def test_a_call_of_the_programs_function_ends_the_answer_and_its_result_taints_the_next(
    stage: Any, dice: Any
) -> None:
    await stage.tool(dice)
    await stage.generator()
    own = AnswerOptions(functions=(WEATHER, TIME))
    calls = ["I look. ", ToolCall("weather", {"city": "Oslo"}), ToolCall("dice", {})]
    response = await answer(stage, "q1", calls, options=own)
    [call] = response.client_calls
    assert (call.function, call.arguments, response.tool_calls) == ("weather", {"city": "Oslo"}, ())
    assert stage.model.asked[0].tools == ["dice", "weather", "time"] and dice.rolls == []
    assert not response.is_memorable
    continued = (
        {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "weather", "arguments": {}}}]},
        {"role": "tool", "tool_name": "weather", "tool_call_id": "c", "content": "Snow."},
    )
    response = await answer(stage, "q2", "It snows.", options=own, continued=continued)
    assert response.answer == "It snows." and response.tainted
    assert [each["role"] for each in stage.model.asked[1].messages] == ["system", "user", "assistant", "tool"]
    both = [ToolCall("weather", {"city": "Oslo"}), ToolCall("time", {})]
    response = await answer(stage, "q3", both, options=own.model_copy(update={"one_call": True}))
    assert [call.function for call in response.client_calls] == ["weather"]


async def test_a_call_that_must_be_made_is_asked_for_as_a_form_and_read_from_the_text(stage: Any) -> None:
    await stage.generator(temperature=0.1)
    written = '{"name": "weather", "arguments": {"city": "Oslo"}}'
    must = AnswerOptions(functions=(WEATHER, TIME), must_call="weather")
    [call] = (await answer(stage, "q1", written, options=must)).client_calls
    assert call.arguments == {"city": "Oslo"}
    form = stage.model.asked[0].format
    assert form["properties"]["name"]["const"] == "weather" and "anyOf" not in form
    assert len(AnswerOptions(functions=(WEATHER, TIME), must_call="any").form["anyOf"]) == 2
    manner = AnswerOptions(temperature=1.5, seed=7, stop=("END",), max_tokens=5, think=False, format={"type": "object"})
    await answer(stage, "q2", "{}", options=manner)
    asked = stage.model.asked[1]
    said = {name: asked.options[name] for name in ("temperature", "seed", "stop", "num_predict")}
    assert said == {"temperature": 1.5, "seed": 7, "stop": ["END"], "num_predict": 5}
    assert (asked.format, asked.think) == ({"type": "object"}, False)


async def test_a_tool_that_is_not_wanted_is_neither_offered_nor_called(stage: Any, dice: Any) -> None:
    await stage.tool(dice)
    await stage.generator()
    profile = AnswerProfile(name="web", model="gemma4:31b", tools=("web_search",), instructions="Search.")
    for number, options in enumerate((
        AnswerOptions(deny=("dice",)), AnswerOptions(allow=()), AnswerOptions(format={"type": "object"}),
        AnswerOptions(profile=profile),
    )):  # fmt: skip
        response = await answer(stage, f"q{number}", ToolCall("dice", {}), "Well.", options=options)
        [record] = response.tool_calls
        assert record.error and record.error.kind == "unknown_tool", options
    assert [asked.tools for asked in stage.model.asked] == [[]] * 8 and dice.rolls == []
    assert "Your part in this conversation:\nSearch." in stage.model.asked[-1].messages[0]["content"]
    assert (response.profile, response.model) == ("web", "gemma4:31b")
    misspelt = AnswerOptions(allow=("dice", "read_result"), deny=("dise", "todo"))
    response = await answer(stage, "misspelt", "Well.", options=misspelt)
    assert response.degraded == ("no tool is called 'dise' now",)
    remembered = await answer(stage, "kept", "Noted.", options=AnswerOptions(remember=True))
    assert remembered.is_memorable and not remembered.in_history
    assert not remembered.model_copy(update={"incognito": True}).is_memorable


def test_a_profile_only_narrows() -> None:
    profile = AnswerProfile(name="x", tools=("a", "b"))
    for options in (AnswerOptions(profile=profile, allow=("b", "c")), AnswerOptions(profile=profile, deny=("a",))):
        assert [tool for tool in "abc" if options.offers(tool)] == ["b"]
    assert not AnswerOptions(profile=profile, format={}).offers("a")
    assert all(AnswerOptions(profile=profile).offers(tool) for tool in OWN)


class LetterTool(Tool):
    """Send a letter."""

    name = "letter"

    async def run(self) -> str:
        return "Sent."


async def test_the_model_is_told_which_calls_need_approval_in_the_mode_of_the_settings_or_the_query(stage: Any) -> None:
    await stage.generator()
    await stage.tool(LetterTool(ToolSettings()))
    await stage.gatekeeper(mode="acceptEdits")
    for query_id, mode, words in (("q1", None, "need the user's approval"), ("q2", "dontAsk", "are not run in this")):
        await answer(stage, query_id, "Well.", options=mode and AnswerOptions(mode=mode))
        assert any(words in line for line in stage.model.asked[-1].background)


# Which model answers.

HOME = Endpoint(kind="ollama", url="http://127.0.0.1:1")
DEFAULTS = Path(__file__).parents[2] / "config"
WINDOWS = {"gemma": 32_000, "small": 2048, "eyes": 32_000}
BOX = Endpoint(kind="openai", url="http://b")
ROUTING = Routing(endpoints={"ollama": HOME, "box": BOX}, default="ollama")


def test_without_a_choice_the_model_of_the_settings_answers_and_without_a_server_none(tmp_path: Path) -> None:
    def model(routing: Routing, kind: Any = GeneratorAgent, config: str = "gemma") -> str:
        resources = Resources(tmp_path, routing, chat_model="gemma")
        return str(kind.build(GeneratorConfig(model=config), resources).details()["model"])

    assert model(Routing.to_one("ollama", HOME)) == "gemma"
    chain = ModelsConfig.model_validate({"roles": {"chat": ["openai/large", "ollama/gemma"]}})
    chained = Routing(config=chain, endpoints={"ollama": HOME, "openai": BOX}, default="ollama")
    assert model(chained) == model(chained, SecondRespondent) == "openai/large"
    assert model(chained, SecondRespondent, "mistral") == "mistral"
    served = Endpoint(kind="openai", url="http://127.0.0.1:2/v1", only_model="tiny")
    assert model(Routing.to_one("llama_server", served)) == "tiny"
    with pytest.raises(ConfigError, match="needs a model server"):
        GeneratorAgent.build(GeneratorConfig(), Resources(tmp_path))


class Several:
    """A server with several models, each with its own window; the one called `eyes` can see."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Json]] = []

    async def chat(self, model: str, messages: Sequence[Json], **options: Any) -> AsyncGenerator[Delta, None]:
        self.asked.append((model, messages[-1]))
        yield ContentDelta("Yes.")
        yield Done(Usage(2, 1), model=model)

    async def show(self, model: str) -> ModelInfo:
        return ModelInfo(model, frozenset({"completion", *(["vision"] if model == "eyes" else [])}), WINDOWS.get(model))

    async def load(self, model: str, options: Any) -> None:
        pass

    async def embed(self, model: str, texts: Sequence[str]) -> list[list[float]]:
        raise NotImplementedError

    async def close(self) -> None:
        pass


class Talk:
    """Asks a generator with several models one question after the other."""

    def __init__(self, stage: Any) -> None:
        self.stage, self.model, self.number = stage, Several(), 0

    async def begin(
        self, default: DefaultModel | None = None, files: AttachmentStore | None = None, **settings: Any
    ) -> None:
        settings = {"think": False, "make_titles": False, **settings}
        config = GeneratorConfig(model="gemma", system_prompt="Be brief.", **settings)
        record = ConversationService(self.stage.database)
        await self.stage.serve(GeneratorAgent(config, self.model, record, default=default, attachments=files))

    async def ask(self, options: AnswerOptions | None = None, **fields: Any) -> ResponseGeneration:
        self.number += 1
        await self.stage.frontend.ask("What is this?", f"q{self.number}", options=options, **fields)
        response: ResponseGeneration = await self.stage.frontend.hears(ResponseGeneration, query_id=f"q{self.number}")
        return response

    async def fails(self, options: AnswerOptions | None = None, **fields: Any) -> tuple[str, str]:
        self.number += 1
        await self.stage.frontend.ask("What is this?", f"q{self.number}", options=options, **fields)
        error = (await self.stage.frontend.hears(QueryFailed, query_id=f"q{self.number}")).error
        return error.kind, error.message


@pytest.fixture
def talk(stage: Any) -> Talk:
    return Talk(stage)


def named(model: str, **more: Any) -> AnswerOptions:
    return AnswerOptions(model=model, **more)


async def test_a_conversation_goes_on_with_the_model_that_was_chosen_in_it_above_the_profile_and_the_settings(
    talk: Talk,
) -> None:
    await talk.begin()
    profile = AnswerProfile(name="code", model="eyes")
    coding = AnswerOptions(profile=profile)
    answers = [
        await talk.ask(options, session=session)
        for options, session in (
            (None, "s"), (named("small"), "s"), (None, "s"), (None, "another"), (named("default"), "s"), (None, "s"),
            (coding, "p"), (named("default", profile=profile), "p"), (coding, "p"), (named("small"), "p"),
            (coding, "p"),
        )
    ]  # fmt: skip
    assert [each.model for each in answers] == [
        "gemma", "small", "small", "gemma", "gemma", "gemma", "eyes", "gemma", "eyes", "small", "small",
    ]  # fmt: skip
    assert [each.usage.context.limit for each in answers[:2] if each.usage.context] == [32_000, 2048]


async def test_the_default_follows_the_settings_while_the_system_runs(talk: Talk, tmp_path: Path) -> None:
    await talk.begin(DefaultModel(ROUTING, (DEFAULTS, tmp_path), "gemma"))
    assert (await talk.ask()).model == "gemma"
    for chain, answers in (
        ("[ollama/eyes]", "eyes"),
        ("[box/small, ollama/eyes]", "box/small"),
        ("[llama_server/none]", "box/small"),  # no running server has it
        ("[nonsense", "box/small"),
    ):
        (tmp_path / "models.yaml").write_text(f"providers: {{box: {{kind: openai}}}}\nroles: {{chat: {chain}}}\n")
        assert (await talk.ask()).model == answers


@pytest.mark.parametrize("fixed", [True, False])
def test_a_model_that_the_command_line_names_stays(tmp_path: Path, fixed: bool) -> None:
    default = DefaultModel(ROUTING.model_copy(update={"is_fixed": fixed}), (DEFAULTS, tmp_path), "gemma")
    (tmp_path / "models.yaml").write_text("roles: {chat: [ollama/eyes]}\n")
    assert (default.refresh(), default.name) == (not fixed, "gemma" if fixed else "eyes")


async def test_pictures_go_to_a_model_that_sees_and_texts_to_the_one_that_answers(talk: Talk, tmp_path: Path) -> None:
    files = AttachmentStore(tmp_path / "files")
    picture, note = files.put("a.png", "image/png", b"\x89PNG").id, files.put("a.txt", "text/plain", b"4711", "4711").id
    await talk.begin(files=files, vision_model="eyes")
    assert [(await talk.ask(attachments=[each])).model for each in (note, picture)] == ["gemma", "eyes"]
    (_, told), (_, shown) = talk.model.asked
    assert "4711" in told["content"] and shown["images"] == ["iVBORw=="]
    assert (await talk.ask(named("eyes"), attachments=[picture])).model == "eyes"


async def test_what_no_model_sees_and_what_is_gone_is_refused_with_what_to_do(talk: Talk, tmp_path: Path) -> None:
    files = AttachmentStore(tmp_path / "files")
    await talk.begin(files=files)
    kind, text = await talk.fails(attachments=[files.put("a.png", "image/png", b"\x89PNG").id])
    assert kind == "unsupported" and "role vision in models.yaml" in text
    kind, text = await talk.fails(attachments=["0" * 64])
    assert kind == "not_found" and "POST /attachments" in text
    assert talk.model.asked == []


async def test_a_long_file_takes_half_of_the_window_at_most(talk: Talk, tmp_path: Path) -> None:
    files, text = AttachmentStore(tmp_path / "files"), "A paragraph about nothing in particular.\n\n" * 2000
    await talk.begin(files=files, num_ctx=2048)
    response = await talk.ask(attachments=[files.put("long.txt", "text/plain", text.encode(), text).id])
    context = response.usage.context
    assert context is not None and 0.3 * 2048 < context.parts["question"] < 0.65 * 2048


async def test_the_model_is_loaded_before_anybody_asks_and_what_is_wrong_with_it_is_reported(
    stage: Any, until: Until, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(respondent, "LOOK_AGAIN_SECONDS", 0.01)
    stage.model.problem = ModelError("model gemma is not pulled: ollama pull gemma", kind="model_missing")
    agent = (await stage.generator(num_ctx=2048, temperature=0.5)).participant
    problem = {"model": "gemma", "problem": "model gemma is not pulled: ollama pull gemma"}
    await until(lambda: agent.details() == problem)
    stage.model.problem = None
    await until(lambda: agent.details() == {"model": "gemma", "load": "loaded"})
    assert stage.model.loaded == ("gemma", {"num_ctx": 2048, "temperature": 0.5})


async def test_who_waits_for_a_model_that_is_away_is_informed_and_may_cancel(stage: Any) -> None:
    agent = GeneratorAgent(
        GeneratorConfig(model="gemma"), stage.model, ConversationService(stage.database), answers_as="stand-in"
    )
    await stage.serve(agent)
    stage.model.will_say(AwayDelta("it is away"), asyncio.Event())
    await stage.frontend.ask("Where?", "q1")
    assert (await stage.frontend.hears(GenerationWaiting)).reason == "it is away"
    assert (agent.details()["model"], agent.details()["problem"]) == ("stand-in", "it is away")
    await stage.frontend.cancel("q1")
    response = await stage.frontend.hears(ResponseGeneration)
    assert (response.status, response.degraded, response.model) == ("cancelled", ("it is away",), "stand-in")

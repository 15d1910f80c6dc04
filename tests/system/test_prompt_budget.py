"""How long prompts are and what stays of them from request to request, as the whole system with its default tools sends
them: rendered by Qwen2.5's chat template and counted by its tokenizer."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from local.cli.temporary_system import write_settings
from local.stories.player import STORIES, LocalWeb, load_pages
from tests.models.llama_cpp.qwen_prompts import QwenPrompts, qwen_prompts
from tests.models.llama_cpp.recording_model import RecordingModel, recording_model
from tests.warm.warm_system import WarmSystem

pytestmark = pytest.mark.xdist_group("prompt budget")  # one server renders all templates

Json = dict[str, Any]

SIZES = {"small": ("probe-0.5b", 494_000_000), "mid": ("probe-32b", 32_800_000_000)}
BUDGETS = {"small": 600, "mid": 1800}  # tokens of a first prompt
NEW_TOKENS = 220  # of a turn's question, its context block and what the template puts around them
TOPICS = (
    "the capital of France", "my files", "what I told you", "a web page", "the time", "my memory", "a search",
    "writing", "a list", "reading", "shopping", "the news",
)  # fmt: skip
QUESTIONS = [f"Question {number} is about {topic}." for number, topic in enumerate(TOPICS, start=1)]
CALLING = QUESTIONS[2::3]  # answered after a call of a tool


@pytest.fixture(scope="module")
def qwen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QwenPrompts]:
    with qwen_prompts(tmp_path_factory.mktemp("qwen")) as prompts:
        yield prompts


@pytest.fixture(scope="module", params=["small", pytest.param("mid", marks=pytest.mark.thorough)])
def sent(
    request: pytest.FixtureRequest, watching: Any, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, list[Json]]:
    """A model's size, and the requests of a conversation of twelve turns that it is sent: by a system with its default
    participants and the stories' web, which is asked as the page asks."""
    folder, model = tmp_path_factory.mktemp("system"), RecordingModel(*SIZES[request.param], reply=_reply)
    with recording_model(model), LocalWeb(load_pages(STORIES / "web")) as web:
        settings: dict[str, Json] = {
            **web.settings(),
            "system": {"backend": "openai"},
            "models": {"providers": {"openai": {"kind": "openai", "url": f"{model.url}/v1"}}},
            "generator": {"model": model.name, "make_titles": False},
            "critic": {"grade": False},
            "memory": {"classify": False},
        }
        config_dir = write_settings(folder / "config", settings)
        with WarmSystem(folder / "data", config_dir=config_dir) as system:
            live = watching(system, config_dir)
            with live.http:
                for question in QUESTIONS:
                    query = {"query": question, "session_id": "s"}
                    with live.stream("POST", "/query", json=query) as events:
                        *_, (_, answer) = events
                    assert answer["answer"].strip() == "All right.", answer
    return request.param, [each for each in model.requests if _asks_one_of(QUESTIONS, each)]


def test_the_first_prompt_of_a_conversation_keeps_to_its_budget(
    sent: tuple[str, list[Json]], qwen: QwenPrompts
) -> None:
    size, (first, *_) = sent
    tokens, tools = qwen.tokens(first), [tool["function"]["name"] for tool in first.get("tools", ())]
    assert tokens <= BUDGETS[size], f"{tokens} tokens with {len(tools)} tools: {tools}"


def test_from_request_to_request_all_that_was_sent_stays_and_only_what_is_new_follows(
    sent: tuple[str, list[Json]], qwen: QwenPrompts
) -> None:
    _, requests = sent
    assert len(requests) == len(QUESTIONS) + len(CALLING)
    prompts = [qwen.render(request) for request in requests]
    for before, after in pairwise(prompts):
        kept = before.removesuffix("<|im_start|>assistant\n")
        shared = next((at for at, (one, other) in enumerate(zip(kept, after, strict=False)) if one != other), len(kept))
        assert shared == len(kept), f"{kept[shared : shared + 80]!r} became {after[shared : shared + 80]!r}"
        assert qwen.count(after[shared:]) <= NEW_TOKENS


def _asks_one_of(questions: list[str], request: Json) -> bool:
    """Whether the user's last message has one of these questions, alone or with the line for small models."""
    said = [str(message["content"]) for message in request["messages"] if message["role"] == "user"]
    return any(question in said[-1] for question in questions) if said else False


def _reply(request: Json) -> str | tuple[str, Json]:
    before_last, last = request["messages"][-2:]
    is_new = last["role"] == "user" and before_last["role"] != "tool"
    return ("list_files", {}) if is_new and _asks_one_of(CALLING, request) else "All right."

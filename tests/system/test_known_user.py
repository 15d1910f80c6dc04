"""What a user has told in one conversation is before the model in the next one, on the real system."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from local.cli.temporary_system import write_settings
from tests.warm.warm_system import WarmSystem

Live = Any  # of conftest.py
PARTICIPANTS = ["arbiter", "generator", "memory", "search_memory"]
TOLD_AND_ASKED = (
    ("I am severely allergic to hazelnuts", "Suggest a cake for my birthday"),
    ("I'm allergic to hazelnuts.", "Which cake should I bake for my birthday?"),
    ("Just so you know, I'm severely allergic to hazelnuts.", "I need an idea for a birthday cake"),
    ("Please remember that I am allergic to hazelnuts", "What could I eat for dessert on my birthday?"),
    ("I have a severe hazelnut allergy.", "It's my birthday on Friday. What cake would you make me?"),
    ("I've got a hazelnut allergy, and it is a bad one.", "Give me a recipe for a birthday cake"),
    ("I'm allergic to hazelnuts. What can I order at an Italian place?", "Plan the sweets for my birthday party"),
    ("I'm deathly allergic to hazelnuts, keep that in mind.", "Recommend a cake"),
    ("By the way, I am very allergic to hazelnuts!", "Find me a nice cake, it is my birthday"),
    ("Hi! My allergies are hazelnuts and pollen.", "cake ideas for my birthday?"),
)


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory, watching: Callable[..., Live]) -> Iterator[Live]:
    folder: Path = tmp_path_factory.mktemp("known-user")
    config_dir = write_settings(folder / "config", {"system": {"participants": PARTICIPANTS}})
    with WarmSystem(folder / "data", config_dir=config_dir, flags=["--backend", "stand_in"]) as system:
        live = watching(system, config_dir)
        with live.http:
            yield live


def told(live: Live, user: str) -> list[str]:
    """The lines that a model is told of a user."""
    lines: list[str] = live.http.get("/memory/facts", params={"user_id": user}).json()["told"]
    return lines


def tell(live: Live, user: str, text: str, value: str, session: str) -> None:
    """Say something, and wait until it is known."""
    live.ask(text, session_id=session, user_id=user)
    live.wait_until(lambda: any(value in line for line in told(live, user)))


def prompt_of(live: Live, user: str, question: str, session: str) -> str:
    """All that the model got when a question was asked."""
    live.ask(question, session_id=session, user_id=user)
    url = f"{live.system.facts.model_url}/stand_in/log"
    requests = httpx.get(url, params={"idle": 1}, timeout=90, trust_env=False).json()["requests"]
    answering = [request["messages"] for request in requests if not request["format"]]  # not what classifies
    texts = [[str(message.get("content") or "") for message in messages] for messages in answering]
    (*_, sent) = (each for each in texts if each[-1].endswith(question))
    return "\n".join(sent)


def asked_until(live: Live, user: str, question: str, *words: str) -> str:
    """All that the model got once it was told just that of the user, a moment after the memory knows it. Each question
    is in a conversation of its own."""
    prompts: list[str] = []

    def is_told() -> bool:
        prompts.append(prompt_of(live, user, question, f"told-{user}-then-{len(prompts)}"))
        return all(word in prompts[-1] for word in words)

    live.wait_until(is_told)
    return prompts[-1]


def turns_of(live: Live, session: str) -> list[dict[str, Any]]:
    """The turns of a conversation, as the page reads them."""
    rows: list[dict[str, Any]] = live.http.get(f"/sessions/{session}/turns").json()["turns"]
    return rows


def test_an_allergy_of_one_conversation_is_before_the_model_in_the_next(live: Live) -> None:
    for number, (said, asked) in enumerate(TOLD_AND_ASKED):
        tell(live, f"user-{number}", said, "hazelnut", f"told-{number}")
        asked_until(live, f"user-{number}", asked, "llerg", "hazelnut")


def test_what_was_corrected_is_told_in_its_new_form_alone(live: Live) -> None:
    tell(live, "cora", "I am allergic to walnuts", "walnuts", "told-cora")
    tell(live, "cora", "I am allergic to hazelnuts, not walnuts", "hazelnuts", "told-cora-2")
    assert not any("walnuts" in line for line in told(live, "cora"))
    prompt = asked_until(live, "cora", "Suggest a cake for Cora's birthday", "is allergic to hazelnuts")
    assert "walnut" not in prompt


def test_nobody_is_told_what_another_user_has_said(live: Live) -> None:
    tell(live, "ann", "I am severely allergic to hazelnuts", "hazelnuts", "told-ann")
    prompt = prompt_of(live, "bob", "Suggest a cake for Bob's birthday", "asked-bob")
    assert "hazelnut" not in prompt and "llerg" not in prompt


def test_what_was_told_and_recalled_is_shown_with_the_answer_and_goes_with_the_memory(live: Live) -> None:
    tell(live, "dora", "I am severely allergic to hazelnuts", "hazelnuts", "told-dora")
    asked_until(live, "dora", "Suggest a cake for Dora", "hazelnuts")
    lamp, which = "We choose the green enamel lamp for the hallway", "Which enamel lamp did we choose for the hallway?"
    live.ask(lamp, session_id="lamp", user_id="dora")
    live.wait_until(lambda: len(live.http.get("/memory", params={"user_id": "dora"}).json()["engrams"]) >= 3)
    contexts: list[dict[str, Any]] = []

    def is_recalled() -> bool:
        """Not at once where the embedding model has to be loaded first: a turn does not wait for that."""
        contexts.append(live.ask(which, session_id=f"asked-dora-{len(contexts)}", user_id="dora")["context"])
        return bool(contexts[-1]["recalled"])

    live.wait_until(is_recalled)
    context = contexts[-1]
    assert [line.split(" (")[0] for line in context["facts"]] == [
        "The user is allergic to hazelnuts. Never suggest anything with hazelnuts."
    ]
    assert all(
        "enamel lamp" in each["query"] and each["engram_id"] in context["engram_ids"] for each in context["recalled"]
    )
    (row,) = turns_of(live, f"asked-dora-{len(contexts) - 1}")
    assert row["context"] == context
    kept = live.http.get("/memory", params={"user_id": "dora"}).json()["engrams"]
    kept.sort(key=lambda engram: engram["engram_id"] not in context["engram_ids"])  # the turn itself goes later
    for number, engram in enumerate(kept):
        live.http.delete(f"/memory/{engram['engram_id']}", params={"user_id": "dora"}).raise_for_status()
        if not number:
            live.wait_until(lambda: turns_of(live, f"asked-dora-{len(contexts) - 1}")[0]["context"] is None)
    live.wait_until(lambda: told(live, "dora") == [])
    live.wait_until(lambda: "hazelnut" not in prompt_of(live, "dora", "And which one was it?", "asked-dora"))
    assert "enamel" not in prompt_of(live, "dora", "And which one was it?", "asked-dora")


def test_an_incognito_conversation_is_told_nothing(live: Live) -> None:
    tell(live, "eve", "I am severely allergic to hazelnuts", "hazelnuts", "told-eve")
    answer = live.ask("Suggest a cake for Eve", session_id="hidden", user_id="eve", incognito=True)
    assert answer["context"] is None


@pytest.mark.thorough  # tests/memory has what is known without a classifier
def test_an_allergy_is_known_though_the_classifier_gets_no_answer(
    tmp_path: Path, watching: Callable[..., Live]
) -> None:
    settings = {"system": {"participants": PARTICIPANTS}, "memory": {"timeout_seconds": 0.000001}}
    config_dir = write_settings(tmp_path / "config", settings)
    with WarmSystem(tmp_path / "data", config_dir=config_dir, flags=["--backend", "stand_in"]) as system:
        live = watching(system, config_dir)
        with live.http:
            for number, (said, asked) in enumerate(TOLD_AND_ASKED[::4]):
                tell(live, f"user-{number}", said, "hazelnut", f"told-{number}")
                asked_until(live, f"user-{number}", asked, "llerg", "hazelnut")
            engrams = live.http.get("/memory", params={"user_id": "user-0"}).json()["engrams"]
            assert {engram["intent"] for engram in engrams} == {None}  # nothing was classified

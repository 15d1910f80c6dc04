"""What is measured on a real model: stories, plain questions, a long conversation, the first word. Each gives lines."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from benchmarks.real_system import Exchange, RealSystem, Settings, load, real_system
from local.bus.envelope import new_id
from local.stories.player import STORIES, LocalWeb, StoryPlayer, load_pages
from local.stories.settings import thinks
from local.stories.story import find_stories, load_story

STORY_NAMES = ("S1", "S2", "S3", "S4", "S5", "S6", "S10", "S13")
STORY_SECONDS = 600.0
QUESTIONS = Path(__file__).with_name("real_questions.yaml")
MODEL_PARAMETERS = {"as it is": None, "mid": 32_000_000_000}
# Nobody grades, classifies or names what is measured alone; the model would do it at the same time.
ALONE: Settings = {"critic": {"grade": False}, "memory": {"classify": False}, "generator": {"make_titles": False}}
ANSWER_TOKENS, SHORT_ANSWER_TOKENS = 200, 64
MARGIN = 32  # tokens of the template around what is new
TURNS = (
    "Hello! I am Anna and I live in Graz.",
    "What is the capital of Austria?",
    "And of Italy?",
    "What is 12 times 12?",
    "Name three fruits.",
    "Which of them is yellow?",
    "Write one sentence about the sea.",
    "Now one about mountains.",
    "What is the opposite of big?",
    "How many minutes does an hour have?",
    "What is my name?",
    "Thank you, that is all.",
)


def stories(model: Path, threads: int, names: Sequence[str]) -> Iterator[str]:
    """Stories on their own web."""
    passed = []
    for name in names:
        [path] = find_stories([name], STORIES)
        story = load_story(path)
        with (
            LocalWeb(load_pages(STORIES / "web")) as web,
            real_system(model, threads=threads, settings=web.settings()) as system,
        ):
            player = StoryPlayer(
                system.client,
                None,
                web=web,
                data_dir=system.system.data_dir,
                wait_seconds=STORY_SECONDS,
                answer_seconds=STORY_SECONDS,
                thinks=thinks(system.system.facts),
            )
            yield f"{story.id}: {story.title}"
            checks = []
            for check in player.play(story):
                checks.append(check.passed)
                yield f"  {check}"
            passed.append(all(checks))
            yield from (f"  · {_told(each)}" for each in system.exchanges() if "response_format" not in each.body)
    yield f"{sum(passed)} of {len(passed)} stories passed"


def questions(model: Path, threads: int) -> Iterator[str]:
    """Plain questions, straight from the server and through LoCAL2."""
    asked: list[dict[str, Any]] = yaml.safe_load(QUESTIONS.read_text(encoding="utf-8"))
    straight, ours = 0, 0
    settings = {**ALONE, "generator": {"make_titles": False, "max_answer_tokens": ANSWER_TOKENS}}
    with real_system(model, threads=threads, settings=settings) as system:
        for each in asked:
            bare = system.straight([{"role": "user", "content": each["ask"]}], max_tokens=ANSWER_TOKENS)
            answer = system.client.ask(each["ask"], new_id())
            told = answer.get("answer") or f"[{answer.get('status')}: {answer.get('error')}]"
            calls = ", ".join(call["tool"] for call in answer.get("tool_calls") or ())
            right = [_is_right(text, each) for text in (bare, told)]
            straight, ours = straight + right[0], ours + right[1]
            yield f"{_mark(right[0])} {_mark(right[1])} {each['ask']}"
            yield f"      straight: {_short(bare)}"
            yield f"      LoCAL2:   {_short(told)}{f' (called {calls})' if calls else ''}"
    yield f"right: {straight} of {len(asked)} straight, {ours} through LoCAL2 (wanted: {straight - 1} at least)"


def conversation(model: Path, threads: int, pause: float) -> Iterator[str]:
    """Twelve turns with critic and classifier on, one slot and no cache in memory: tokens evaluated for each."""
    args, met, session = ("--parallel", "1", "--cache-ram", "0"), [], new_id()
    settings = {"generator": {"max_answer_tokens": SHORT_ANSWER_TOKENS}}
    with real_system(model, threads=threads, settings=settings, server_args=args) as system:
        before: list[Exchange] = []
        for number, question in enumerate(TURNS, start=1):
            seen = len(system.exchanges())
            system.client.ask(question, session)
            turn = system.turn(question, seen)
            behind = [each for each in system.exchanges()[seen:] if each not in turn]
            evaluated = sum(each.evaluated for each in turn)
            allowed = sum(_new_tokens(system, each, before + turn[:at]) for at, each in enumerate(turn)) + MARGIN
            whole = turn[0].evaluated + turn[0].cached
            if number > 1:
                met.append(evaluated <= allowed)
            missed = " MISSED" if number > 1 and not met[-1] else ""
            behind_tokens = sum(each.evaluated for each in behind)
            yield (
                f"turn {number:2}: {evaluated:5} evaluated of {whole:5}, {allowed:4} wanted{missed}; "
                f"{len(turn)} call(s), tools: {_tools(turn[0])}; in the background since the turn before: "
                f"{len(behind)} calls, {behind_tokens} tokens evaluated"
            )
            before = [*before, *turn]
            time.sleep(pause)  # a person reads and types
    yield f"{sum(met)} of {len(met)} turns after the first within the limit"


def first_token(model: Path, threads: int, rounds: int) -> Iterator[str]:
    """What we add before the first word and behind it, and the tokens of a first turn for a small and a mid model."""
    for size, parameters in MODEL_PARAMETERS.items():
        with real_system(model, threads=threads, settings=ALONE, parameters=parameters) as system:
            exchange = _sent(system, "What is the capital of France?")
            yield f"first turn, size {size}: {system.prompt_tokens(exchange.body)} tokens, tools: {_tools(exchange)}"
            if parameters is not None:
                continue
            added, whole, bare = list[float](), list[float](), list[float]()
            for question, seconds, exchange in _first_words(system, rounds):
                assert exchange.first is not None, question
                added.append(seconds - (exchange.first - exchange.began))
                whole.append(seconds)
                bare.append(_first_word_straight(system, exchange))
            yield (
                f"first word, p50 of {len(added)}: {median(whole) * 1e3:.0f} ms through LoCAL2, "
                f"{median(bare) * 1e3:.0f} ms straight for the same messages, {median(added) * 1e3:.1f} ms of it ours "
                f"(wanted: 50); worst {max(added) * 1e3:.0f} ms; {load()}"
            )


def _sent(system: RealSystem, question: str) -> Exchange:
    """The request that a question makes, whose answer nobody waits for."""
    query_id = new_id()
    body = {"query": question, "session_id": new_id(), "query_id": query_id}
    next(system.client.query_events(body))
    system.wait_for(lambda: system.is_asked)
    system.client.request("POST", f"/query/{query_id}/cancel")
    system.wait_for(lambda: bool(system.exchanges()))
    return system.exchanges()[-1]


def _first_words(system: RealSystem, rounds: int) -> Iterator[tuple[str, float, Exchange]]:
    """Questions of one conversation, the seconds to the first word of each, and the request that it made."""
    session = new_id()
    for number in range(rounds):
        question, seen, seconds = f"What is {number} plus 1? Say only the number.", len(system.exchanges()), None
        began = time.monotonic()
        for event in system.client.query_events({"query": question, "session_id": session}):
            if event.name == "token" and seconds is None:
                seconds = time.monotonic() - began
        found = system.turn(question, seen)
        if len(found) == 1 and seconds is not None:
            yield question, seconds, found[0]


def _first_word_straight(system: RealSystem, exchange: Exchange) -> float:
    """Seconds to the first word of the same request, whose prompt is in the cache but for its last token."""
    began = time.monotonic()
    with system.server.stream("POST", "/v1/chat/completions", json=exchange.body) as response:
        for line in response.iter_lines():
            if re.search(r'"content":"[^"]', line):
                return time.monotonic() - began
    return time.monotonic() - began


def _new_tokens(system: RealSystem, exchange: Exchange, before: list[Exchange]) -> int:
    """Of the messages that no earlier request held and that the model has not said itself."""
    known = [message for each in before for message in each.messages]
    texts = [str(message.get("content") or "") for message in exchange.messages if message not in known]
    if before:
        roles = [message["role"] for message in exchange.messages if message not in known]
        texts = [text for text, role in zip(texts, roles, strict=True) if role in ("user", "tool")]
    return sum(system.tokens(text) for text in texts)


def _tools(exchange: Exchange) -> str:
    return ", ".join(tool["function"]["name"] for tool in exchange.body.get("tools") or ()) or "none"


def _told(exchange: Exchange) -> str:
    calls = ", ".join(str(call.get("function")) for call in exchange.calls)
    asked = _short(str(exchange.messages[-1].get("content")))
    read = f"{exchange.evaluated} of {exchange.evaluated + exchange.cached} tokens"
    return f"{read} · tools: {_tools(exchange)} · {asked} → {_short(exchange.text)} {calls}"


def _is_right(text: str, question: dict[str, Any]) -> bool:
    return re.search(question["right"], text, 0 if question.get("exact") else re.I) is not None


def _mark(right: bool) -> str:
    return "✓" if right else "✗"


def _short(text: str, most: int = 160) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[:most]}…"

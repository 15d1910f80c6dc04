"""What the rules make of a conversation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from local.bus.messages import ContextItem, with_block
from local.stand_in import rules as brain
from local.stand_in.rules import AssistantMessage, ToolUse, read

Json = dict[str, Any]
MakeTool = Callable[..., Json]

HITS = """Today's date: 2026-05-30

[1] Title: Gemma learns a new trick
    Snippet: The small model now plans its own searches. It took a week.
    URL: https://news.example/gemma
[2] Title: Chips get cheaper
    Snippet: Prices fell by a tenth.
    URL: https://news.example/chips"""
PAGE = """URL: https://news.example/gemma
Title: Gemma and its tools
Extracted text:
Gemma calls tools by name. The harness answers each call in order! A third thing is that nobody waits. A fourth too."""


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def called(name: str, **arguments: Any) -> Json:
    return {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": name, "arguments": arguments}}]}


def result(name: str, text: str) -> Json:
    return {"role": "tool", "tool_name": name, "content": text}


def reply(messages: list[Json], *tools: Json) -> AssistantMessage:
    return brain.reply(read(messages, tools))


@pytest.mark.parametrize(
    "question",
    ["Which AI news broke this week?", "Weather in Oslo tomorrow", "Look up the GDPR", "latest Rust"],
)
def test_a_question_about_current_things_is_searched_for(question: str, tool: MakeTool) -> None:
    said = reply([user(question)], tool("web_search"))
    assert [call.name for call in said.calls] == ["web_search"]
    assert said.calls[0].arguments["query"] in question
    assert "search" in said.thinking
    assert not said.content


def test_the_top_result_is_searched_then_fetched_then_quoted(tool: MakeTool) -> None:
    tools = tool("web_search"), tool("web_fetch", url={"type": "string"})
    messages = [user("Summarize the content of the top result for: LoCAL2 Gemma tool calling")]
    assert reply(messages, *tools).calls == (ToolUse("web_search", {"query": "LoCAL2 Gemma tool calling"}),)
    messages += [called("web_search", query="x"), result("web_search", HITS)]
    assert reply(messages, *tools).calls == (ToolUse("web_fetch", {"url": "https://news.example/gemma"}),)
    messages += [called("web_fetch", url="x"), result("web_fetch", PAGE)]
    said = reply(messages, *tools)
    assert not said.calls
    assert "The harness answers each call in order!" in said.content
    assert said.content.startswith("Gemma and its tools — https://news.example/gemma:\nGemma calls")
    assert "fourth" not in said.content


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("Ask me which colour I like: red, blue or green.", ("Which colour I like?", ["red", "blue", "green"])),
        ("Before you begin, ask me what the file is called.", ("What the file is called?", None)),
        ("Ask me when to begin: now", ("When to begin?", ["now"])),
    ],
)
def test_who_wants_to_be_asked_is_asked(tool: MakeTool, said: str, asked: tuple[str, list[str] | None]) -> None:
    reply = brain.reply(read([user(said)], [tool("request_clarification")]))
    question, options = asked
    arguments = {"question": question} | ({} if options is None else {"options": options})
    assert reply.calls == (ToolUse("request_clarification", arguments),)
    assert brain.reply(read([user(said)], [])).calls == ()


def test_the_background_before_a_question_is_no_part_of_it_but_for_its_files() -> None:
    items = [ContextItem(kind="list", key="todo", text="[Your to-do list so far:\n[ ] delete it\n]")]
    assert read([user(with_block(items, "Hello"))], []).question == "Hello"
    items.append(ContextItem(kind="file", key="q", text="[The user has attached 'a.txt'.]\nold text"))
    asked = read([user(with_block(items, "Hello"))], []).question
    assert asked == "Hello\n\n[The user has attached 'a.txt'.]\nold text"


def test_a_tool_named_in_the_question_is_called_with_arguments_of_the_right_types(tool: MakeTool) -> None:
    dice = tool("dice", sides={"type": "integer"}, colour={"type": "string", "enum": ["red", "blue"]}, note={})
    said = reply([user("Roll a blue dice with 20 sides")], dice)
    arguments = {"sides": 20, "colour": "blue", "note": "Roll a blue dice with 20 sides"}
    assert said.calls == (ToolUse("dice", arguments),)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What is the capital of France?", "Paris"),
        ("Tell me about the Python GIL.", "Global Interpreter Lock"),
        ("what is 17 * 23", "391"),
        ("What is 2 times (3 plus 4)?", "= 14"),
        ("what is 7 / 0", "divides by zero"),
    ],
)
def test_a_known_fact_or_a_sum_is_answered_without_a_tool(question: str, answer: str, tool: MakeTool) -> None:
    said = reply([user(question)], tool("web_search"))
    assert answer in said.content
    assert not said.calls


def test_a_follow_up_is_resolved_from_the_history_that_was_sent() -> None:
    history = [user("Tell me about the Python GIL."), {"role": "assistant", "content": "It is a lock."}]
    assert "reference counting" in reply([*history, user("Why was it introduced?")]).content
    assert "do not know what “it” refers to" in reply([user("Why was it introduced?")]).content

"""How able a model is, by its name, and which tools it is offered."""

from __future__ import annotations

from typing import Any

import pytest

from local.models.tool_selection import choose_tools, tier_of


@pytest.mark.parametrize(
    ("model", "tier"),
    [
        ("gemma4:e2b", "weak"),
        ("gemma4:e4b-it-q4_K_M", "weak"),
        ("gemma4:12b", "mid"),
        ("gemma-4-12b-it-Q4_K_M", "mid"),
        ("gemma4:31b", "mid"),
        ("qwen3:30b-a3b", "mid"),
        ("qwen2.5-coder:1.5b", "weak"),
        ("smollm2:360m", "weak"),
        ("mixtral:8x7b", "mid"),
        ("hf.co/bartowski/Meta-Llama-3.1-70B-Instruct-GGUF:Q4_K_M", "frontier"),
        ("gpt-oss:20b", "mid"),
        ("deepseek-r1:7b", "weak"),
        ("deepseek/deepseek-r1", "frontier"),
        ("anthropic/claude-opus-4", "frontier"),
        ("anthropic/claude-haiku-4", "mid"),
        ("gpt-5", "frontier"),
        ("gpt-4o-mini", "mid"),
        ("gemini-2.5-pro", "frontier"),
        ("gemini-2.5-flash", "mid"),
        ("mistral-large-latest", "frontier"),
        ("something", "mid"),
    ],
)
def test_the_name_tells_the_tier(model: str, tier: str) -> None:
    assert tier_of(model) == tier


def tool(name: str, about: str = "") -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": about, "parameters": {}}}


TOOLS = [tool("calendar"), tool("dice", "Roll dice and tell the numbers."), tool("web_search", "Search the web.")]


def names(messages: list[dict[str, Any]], limit: int | None) -> list[str]:
    return [tool["function"]["name"] for tool in choose_tools(TOOLS, messages, limit)]


def test_without_a_limit_or_within_it_all_are_offered() -> None:
    asked = [{"role": "user", "content": "Roll the dice"}]
    assert names(asked, None) == names(asked, 3) == ["calendar", "dice", "web_search"]


def test_the_tools_that_the_question_speaks_of_come_first_and_keep_their_order() -> None:
    assert names([{"role": "user", "content": "Roll the dice"}], 1) == ["dice"]
    assert names([{"role": "user", "content": "Search the web for dice"}], 2) == ["dice", "web_search"]
    assert names([{"role": "user", "content": "Hello"}], 2) == ["calendar", "dice"]
    assert names([], 0) == []


def test_a_tool_that_was_called_stays_for_the_rest_of_the_conversation() -> None:
    call = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "calendar", "arguments": {}}}]}
    assert names([{"role": "user", "content": "Roll the dice"}, call], 1) == ["calendar"]

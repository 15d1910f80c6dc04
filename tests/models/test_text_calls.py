"""A call written as text is found, an answer that talks of calls is not."""

from __future__ import annotations

import time

import pytest

from local.models.chat import ToolCall
from local.models.text_calls import find_text_call

SEARCH = {
    "type": "function",
    "function": {
        "name": "web_search",
        "parameters": {
            "type": "object",
            "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
            "required": ["query"],
        },
    },
}
TOOLS = [SEARCH, {"type": "function", "function": {"name": "now"}}]
EXPECTED = ToolCall("web_search", {"query": "bus, {zmq}", "limit": 3})

ARGUMENTS = '{"query": "bus, {zmq}", "limit": 3}'
DIALECTS = [
    f'{{"name": "web_search", "parameters": {ARGUMENTS}}}',
    f'{{"name": "functions.web_search", "arguments": {ARGUMENTS}}}',
    f'{{"tool": "web_search", "arguments": {ARGUMENTS}}}',
    f'{{"type": "function", "function": {{"name": "web_search", "arguments": {ARGUMENTS}}}}}',
    f'{{"tool_calls": [{{"function": {{"name": "web_search", "arguments": {ARGUMENTS}}}}}]}}',
    f'[{{"name": "web_search", "args": {ARGUMENTS}}}]',
    '{"name": "web_search", "arguments": "{\\"query\\": \\"bus, {zmq}\\", \\"limit\\": 3}"}',
    f'```json\n{{"name": "web_search", "arguments": {ARGUMENTS}}}\n```',
    f'```\n{{"name": "web_search", "arguments": {ARGUMENTS}}}\n```',
    f'<tool_call>\n{{"name": "web_search", "arguments": {ARGUMENTS}}}\n</tool_call>',
    f'<tool_call>{{"name": "web_search", "arguments": {ARGUMENTS}}}',
    f'<tool_call>```json\n{{"name": "web_search", "arguments": {ARGUMENTS}}}\n```</tool_call>',
    '```tool_code\nweb_search(query="bus, {zmq}", limit=3)\n```',
    '```tool_code\nprint(default_api.web_search(query="bus, {zmq}", limit=3))\n```',
    '[web_search(query="bus, {zmq}", limit=3)]',
    'web_search(query="bus, {zmq}", limit=3)',
    '<|tool_call>call:web_search{query:<|"|>bus, {zmq}<|"|>,limit:3}<tool_call|>',
    '<|tool_call>call:web_search{"query":"bus, {zmq}", limit: 3}',
    'call:web_search{query:<|"|>bus, {zmq}<|"|>,limit:3}',
]


@pytest.mark.parametrize("content", DIALECTS)
def test_a_call_in_every_dialect_is_found(content: str) -> None:
    assert find_text_call(f"\n{content}\n", TOOLS) == EXPECTED


def test_gemma_texts_keep_their_quotes_and_line_ends() -> None:
    content = '<|tool_call>call:web_search{query:<|"|>say "hi",\nlimit:2<|"|>}<tool_call|>'
    assert find_text_call(content, TOOLS) == ToolCall("web_search", {"query": 'say "hi",\nlimit:2'})


def test_a_short_remark_beside_a_call_is_tolerated() -> None:
    content = f'Searching: ```json\n{{"name": "web_search", "arguments": {ARGUMENTS}}}\n```'
    assert find_text_call(content, TOOLS) == EXPECTED


def test_a_tool_without_parameters_can_be_called() -> None:
    assert find_text_call('{"name": "now", "arguments": {}}', TOOLS) == ToolCall("now", {})


ANSWERS = {
    "nothing to call": "",
    "plain text": "You could use web_search for that.",
    "an unknown tool": '{"name": "delete_all", "arguments": {"query": "web_search"}}',
    "a required argument missing": '{"name": "web_search", "arguments": {"limit": 3}}',
    "an argument of another type": '{"name": "web_search", "arguments": {"query": 3}}',
    "no arguments at all": '{"name": "web_search"}',
    "data that is no call": '{"web_search": {"query": "x"}}',
    "two calls": '[{"name": "web_search", "arguments": {"query": "x"}}, {"name": "now", "arguments": {}}]',
    "an example in an explanation": f'A call of web_search looks like this: {{"name": "web_search", "arguments": '
    f"{ARGUMENTS}}}. The bus carries it to the tool, which answers with a result.",
    "code that is not literal": "web_search(query=open('/etc/passwd').read())",
    "a call in a larger expression": 'web_search(query="x") + web_search(query="y")',
    "half a call": '{"name": "web_search", "arguments": {"query": "x"',
}


@pytest.mark.parametrize("content", ANSWERS.values(), ids=ANSWERS)
def test_what_is_not_clearly_a_call_is_an_answer(content: str) -> None:
    assert find_text_call(content, TOOLS) is None


def test_without_tools_nothing_is_a_call() -> None:
    assert find_text_call(DIALECTS[0], []) is None


@pytest.mark.parametrize(
    "content",
    [
        "web_search(" + "-" * 30_000 + "1)",
        "{" * 30_000 + "web_search",
        "``` web_search" + " " * 30_000 + "x",
        "<tool_call>" * 2_500 + "web_search",
        'call:web_search{<|"|>' * 1_500,
        "web_search" + ".b" * 15_000 + "()",
        "web_search " * 500_000,
    ],
    ids=lambda content: content[:20],
)
def test_degenerate_output_is_refused_quickly(content: str) -> None:
    start = time.process_time()
    assert find_text_call(content, TOOLS) is None
    assert time.process_time() - start < 30  # minutes where it grows with a square

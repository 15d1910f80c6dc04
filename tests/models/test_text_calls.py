"""A call written as text is found, an answer that talks of calls is not."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from local.models.chat import ToolCall
from local.models.client import find_text_calls, fits, may_be_call

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
BOTH = ["web_search", "now"]
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
def test_a_call_in_every_dialect_is_found_and_may_be_one_from_its_first_character_on(content: str) -> None:
    assert find_text_calls(f"\n{content}\n", TOOLS) == [EXPECTED]
    assert all(may_be_call(content[:end], BOTH) for end in range(1, len(content)))


def test_gemma_texts_keep_their_quotes_and_line_ends() -> None:
    content = '<|tool_call>call:web_search{query:<|"|>say "hi",\nlimit:2<|"|>}<tool_call|>'
    assert find_text_calls(content, TOOLS) == [ToolCall("web_search", {"query": 'say "hi",\nlimit:2'})]


def test_a_short_remark_beside_a_call_is_tolerated() -> None:
    content = f'Searching: ```json\n{{"name": "web_search", "arguments": {ARGUMENTS}}}\n```'
    assert find_text_calls(content, TOOLS) == [EXPECTED]


def test_a_tool_without_parameters_can_be_called() -> None:
    assert find_text_calls('{"name": "now", "arguments": {}}', TOOLS) == [ToolCall("now", {})]


ANSWERS = {
    "nothing to call": "",
    "plain text": "You could use web_search for that.",
    "no arguments at all": '{"name": "web_search"}',
    "data that is no call": '{"web_search": {"query": "x"}}',
    "an example in an explanation": f'A call of web_search looks like this: {{"name": "web_search", "arguments": '
    f"{ARGUMENTS}}}. The bus carries it to the tool, which answers with a result.",
    "code that is not literal": "web_search(query=open('/etc/passwd').read())",
    "a call in a larger expression": 'web_search(query="x") + web_search(query="y")',
    "half a call": '{"name": "web_search", "arguments": {"query": "x"',
}


@pytest.mark.parametrize("content", ANSWERS.values(), ids=ANSWERS)
def test_what_is_not_clearly_a_call_is_an_answer(content: str) -> None:
    assert find_text_calls(content, TOOLS) == []


X = '{"name": "web_search", "arguments": {"query": "x"}}'
NOW = '{"name": "now", "arguments": {}}'


def names(content: str, question: str = "") -> list[str]:
    return [call.name for call in find_text_calls(content, TOOLS, question)]


@pytest.mark.parametrize(
    "content",
    [
        f"{X}\n{NOW}",
        f"{X}, {NOW}",
        f"[{X}, {NOW}]",
        f'{{"tool_calls": [{X}, {NOW}]}}',
        f"<tool_call>\n{X}\n</tool_call>\n<tool_call>\n{NOW}\n</tool_call>",
        f"```json\n{X}\n```\n```json\n{NOW}\n```",
        f"```json\n{X}\n{NOW}\n```",
        f"I will look that up.\n\n{X}\n\nThen:\n{NOW}",
        '[web_search(query="x"), now()]',
    ],
)
def test_several_calls_in_one_message_are_read_in_their_order(content: str) -> None:
    assert names(content) == BOTH


@pytest.mark.parametrize(
    "rest",
    [
        "{",
        '{"na',
        '{"name": "now"',
        '{"name": "web_search", "arguments": {"query": "y',
        '{"name": "now", "arguments": {"',
    ],
)
def test_a_last_call_that_is_cut_off_leaves_the_calls_before_it(rest: str) -> None:
    assert names(f"{X}\n{NOW}\n{rest}") == BOTH


@pytest.mark.parametrize("rest", ['{"a": [1,', "[see below", '{"name": '])
def test_what_is_cut_off_without_a_whole_call_before_it_is_no_call(rest: str) -> None:
    assert names(rest) == []


@pytest.mark.parametrize(
    "content",
    [
        '{{"name": "web_search", "arguments": {"query": "x"}}}',
        '{{"name": "web_search", "arguments": {{"query": "x"}}}}',
        '<tool_call>\n{{"name": "web_search", "arguments": {"query": "x"}}}\n</tool_call>',
        '{"name": "web_search", "arguments": {"query": "x"}',  # the last brace is missing
        '<json>\n  {"name": "web_search", "arguments": {"query": "x"}}\n</json>',
        '{"name": "web_search",\n "arguments": {"query": "x"}}</tool_call>',
    ],
)
def test_what_a_faulty_template_makes_of_a_call_is_read(content: str) -> None:
    assert find_text_calls(content, TOOLS) == [ToolCall("web_search", {"query": "x"})]


def test_doubled_braces_within_an_argument_stay_where_the_json_is_right() -> None:
    content = '{"name": "web_search", "arguments": {"query": "{{x}}"}}'
    assert find_text_calls(content, TOOLS) == [ToolCall("web_search", {"query": "{{x}}"})]


@pytest.mark.parametrize("begin", ["{", "{{"])
def test_no_character_of_an_argument_is_lost(begin: str) -> None:
    code = "```js\nf({a: {b: 1}}) // {{x}} </tool_call> <json>\n```"
    end = begin.replace("{", "}")
    content = f'{begin}"name": "web_search", "arguments": {{"query": {json.dumps(code)}}}{end}'
    for written in (content, f"```json\n{content}\n```", f"<tool_call>{content}</tool_call>"):
        assert find_text_calls(written, TOOLS) == [ToolCall("web_search", {"query": code})]


@pytest.mark.parametrize(
    "content",
    [
        '{"name": "delete_all", "arguments": {"query": "web_search"}}',
        '```json\n{"name": "To-Do List", "arguments": {"items": ["Milk"]}}\n```',
        '{"name": "web_search", "arguments": {"limit": 3}}',
        '{"name": "web_search", "arguments": {"query": 3}}',
        'You can use this:\n\n{"name": "good morning", "arguments": {"language": "fr"}}',
    ],
)
def test_a_call_that_cannot_be_made_is_a_call_unless_json_was_asked_for(content: str) -> None:
    assert len(names(content, "Good morning!")) == 1
    assert names(content, "Give me an example in JSON.") == []
    assert names(content, "Show me a tool call.") == []


@pytest.mark.parametrize("before", ["", "To find the weather, I call the tool. ", "First [1]:\n\n* {x}\n"])
@pytest.mark.parametrize("after", ["", " That will give the current weather.", "\n\nPlease wait … {y}"])
@pytest.mark.parametrize(
    "call",
    [X, f"<tool_call>\n{X}\n</tool_call>", f"```json\n{X}\n```", f"`{X}`", X.replace("{", "{{").replace("}", "}}")],
)
def test_a_call_between_words_is_found_where_it_is_looked_for(before: str, call: str, after: str) -> None:
    content = f"{before}{call}{after}"
    assert find_text_calls(content, TOOLS, among_words=True) == [ToolCall("web_search", {"query": "x"})]
    assert find_text_calls(f"{before}Look: {call}{after}", TOOLS, "Show me a tool call.", among_words=True) == []


def test_where_json_is_asked_for_a_call_of_a_tool_that_there_is_stays_one() -> None:
    assert names(X, "Search for JSON.") == ["web_search"]
    assert names(f"This is how:\n{X}", "Show me the JSON of a call") == []


def test_without_tools_a_call_is_found_by_its_form_alone() -> None:
    assert len(find_text_calls(DIALECTS[0], [])) == 1
    assert find_text_calls('web_search(query="x")', []) == []


# What models answer with JSON or code in it.
ORDINARY = [
    ("Give me JSON of a person with name and age.", '{"name": "Ada", "age": 36}'),
    ("Give me a JSON object of a function.", '{"name": "add", "arguments": {"a": 1, "b": 2}}'),
    ("Who is Ada?", '{"name": "Ada Lovelace", "born": 1815}'),
    ("List three cities.", '["Rome", "Paris", "Berlin"]'),
    ("List two people.", '[{"name": "Ada", "id": 1}, {"name": "Bob", "id": 2}]'),
    ("Make a config.", '```json\n{"host": "localhost", "port": 80}\n```'),
    ("Make a config.", '```json\n{"name": "web", "type": "server", "port": 80}\n```'),
    ("Write package.json.", '{"name": "page", "version": "1.0.0", "scripts": {"test": "node --test"}}'),
    ("How do I print in Python?", '```python\nprint("hello")\n```'),
    ("Write a function.", "```python\ndef add(a, b):\n    return a + b\n```"),
    ("Call it.", 'add(a=1, b=2)'),
    ("What is a dict?", 'A dict is written so: {"a": 1}. It maps keys to values.'),
    ("What is a template?", "In Jinja, {{ name }} is replaced by the value."),
    ("Explain.", f"A call looks like this: {X}. The bus carries it to the tool, which then answers."),
    ("What is [1]?", "[1] is a list with one number."),
    ("Sum?", "The sum is 42."),
    ("Now?", "now is the time"),
    ("Set?", "{1, 2, 3} is a set."),
    ("C?", '```c\nint main() { return 0; }\n```'),
    ("HTML?", "<p>Hello</p>"),
    ("Search?", "web_search finds pages; read_file reads a file."),
    ("GeoJSON of Rome", '{"type": "Feature", "properties": {"name": "Rome"}}'),
    ("A shell call", '```bash\nls -la\n```'),
    ("Name a drink and what it needs.", '{"name": "Tea", "input": "hot water", "unit": "cup"}'),
    ("Translate.", 'Bonjour {"name"}'),
]  # fmt: skip


def test_an_ordinary_answer_with_json_or_code_in_it_is_an_answer() -> None:
    assert [question for question, content in ORDINARY if names(content, question)] == []


def test_what_a_small_model_really_wrote_is_read() -> None:
    """Of Qwen2.5-Coder-0.5B with six tools; `calls` was checked by a person."""
    offered = ("search_memory", "web_search", "web_fetch", "read_file", "list_files", "write_file")
    tools = [{"type": "function", "function": {"name": name}} for name in offered]
    lines = (Path(__file__).parent.parent / "data" / "text_calls.jsonl").read_text("utf-8").splitlines()
    for output in map(json.loads, lines):
        found = find_text_calls(output["content"], tools, output["question"])
        assert [call.name for call in found] == output["calls"], output["content"]
        assert not found or _held_from_its_beginning(output["content"]), output["content"]


def _held_from_its_beginning(content: str) -> bool:
    """Whether the call is taken for one as it comes, from the line on which it begins."""
    begin = min(at for mark in ("{", "```", "<json>") if (at := content.find(mark)) >= 0)
    return all(may_be_call(content[begin:end]) for end in range(begin + 1, len(content)))


def test_what_cannot_become_a_call_is_known_soon() -> None:
    for content in (
        "It is",
        '{"name": "Ada", "age"',
        '{"host": ',
        "```c\n",
        "```bash\nls",
        "[1, 2",
        "<p>",
        "nowhere",
        '["Rome"',
        "{1,",
    ):
        assert not may_be_call(content, BOTH), content


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
    assert find_text_calls(content, TOOLS) == []
    assert time.process_time() - start < 30  # minutes where it grows with a square


# Arguments against the JSON Schemas that tools use

POINT = {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"], "additionalProperties": False}
NESTED = {"$defs": {"Point": POINT}, "type": "object", "properties": {"at": {"$ref": "#/$defs/Point"}}}

FITTING: list[tuple[Any, dict[str, Any]]] = [
    ({}, {}),
    ({"anything": 1}, {"type": "object"}),
    ({"x": 1}, POINT),
    ({"at": {"x": 1.5}}, NESTED),
    (["a"], {"type": "array", "items": {"type": "string"}}),
    (None, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
    ("a", {"type": ["string", "null"]}),
    ("a", {"enum": ["a", "b"]}),
    (True, {"type": "boolean"}),
    (1, {"allOf": [{"type": "integer"}, {"const": 1}]}),
]
MISFITS: list[tuple[Any, dict[str, Any]]] = [
    ([], {"type": "object"}),
    ({}, POINT),
    ({"x": 1, "y": 2}, POINT),
    ({"x": "1"}, POINT),
    ({"at": {"x": "1"}}, NESTED),
    ([1], {"type": "array", "items": {"type": "string"}}),
    (1, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
    ("c", {"enum": ["a", "b"]}),
    (True, {"type": "integer"}),
    (True, {"type": "number"}),
    (1.5, {"type": "integer"}),
    (1, {"type": "boolean"}),
    (2, {"allOf": [{"type": "integer"}, {"const": 1}]}),
]


def test_arguments_fit_what_the_schema_asks_for_and_nothing_else() -> None:
    assert [each for each in FITTING if not fits(*each)] == []
    assert [each for each in MISFITS if fits(*each)] == []

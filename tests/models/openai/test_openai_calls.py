"""Fragments of tool calls, as servers have been seen to send them."""

from __future__ import annotations

from typing import Any

import pytest

from local.core.errors import ModelError
from local.models.chat import Json, ToolCall
from local.models.openai import CallAssembler


def fragment(arguments: Any = None, name: str | None = None, index: int | None = None, **more: Any) -> Json:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {"function": function} | ({} if index is None else {"index": index}) | more


def assemble(*fragments: Any, reason: str = "tool_calls") -> list[ToolCall]:
    assembler = CallAssembler("m")
    for part in fragments:
        assembler.add(part)
    return assembler.calls(reason)


A, B = ToolCall("f", {"x": 1}, "a"), ToolCall("g", {"y": 2}, "b")


def test_fragments_are_put_together_by_index() -> None:
    assert assemble(
        fragment("", "f", 0, id="a", type="function"),
        fragment('{"x"', index=0),
        fragment("", "g", 1, id="b"),
        fragment('{"y": ', index=1),
        fragment(": 1}", index=0),
        fragment("2}", index=1),
    ) == [A, B]


def test_calls_come_in_the_order_of_their_index() -> None:
    assert assemble(fragment('{"y":2}', "g", 1, id="b"), fragment('{"x":1}', "f", 0, id="a")) == [A, B]


def test_an_index_may_begin_anywhere() -> None:
    assert assemble(fragment('{"x":1}', "f", 3, id="a"), fragment('{"y":2}', "g", 7, id="b")) == [A, B]


@pytest.mark.parametrize("index", [None, 0])
def test_whole_calls_without_an_index_or_all_with_the_first_are_told_apart(index: int | None) -> None:
    assert assemble(fragment('{"x":1}', "f", index, id="a"), fragment('{"y":2}', "g", index, id="b")) == [A, B]


@pytest.mark.parametrize("index", [None, 0])
def test_whole_calls_of_one_tool_without_ids_are_told_apart(index: int | None) -> None:
    calls = assemble(fragment('{"x":1}', "f", index), fragment('{"x":2}', "f", index))
    assert calls == [ToolCall("f", {"x": 1}), ToolCall("f", {"x": 2})]


def test_calls_of_one_tool_that_share_an_index_and_come_in_fragments_are_told_apart_by_their_ids() -> None:
    pieces = [(fragment("", "f", 0, id=call_id), fragment('{"x":1}', index=0)) for call_id in "ab"]
    assert assemble(*pieces[0], *pieces[1]) == [ToolCall("f", {"x": 1}, "a"), ToolCall("f", {"x": 1}, "b")]


def test_fragments_without_an_index_continue_the_call_of_their_id_or_the_last() -> None:
    assert assemble(
        fragment("{", "f", id="a"), fragment('"x":1}'), fragment("{", "g", id="b"), fragment('"y":2}', id="b")
    ) == [A, B]


def test_an_id_and_a_name_in_every_fragment_are_one_call() -> None:
    pieces = ('{"x"', ":", "1}", "")
    assert assemble(*(fragment(piece, "f", 0, id="a") for piece in pieces)) == [A]


def test_the_same_id_for_two_calls_is_two_calls() -> None:
    calls = assemble(fragment('{"x":1}', "f", 0, id="a"), fragment('{"y":2}', "g", 1, id="a"))
    assert [call.name for call in calls] == ["f", "g"]


@pytest.mark.parametrize("arguments", [None, "", "{}", {}])
def test_missing_arguments_are_none(arguments: Any) -> None:
    assert assemble(fragment(arguments, "f", 0)) == [ToolCall("f", {})]


def test_arguments_may_be_an_object() -> None:
    assert assemble(fragment({"x": 1}, "f", 0, id="a")) == [A]


def test_sixty_six_calls_are_sixty_six() -> None:
    assert len(assemble(*(fragment("{}", "f", index, id=f"c{index}") for index in range(66)))) == 66


@pytest.mark.parametrize(
    "fragments",
    [
        [fragment('{"x":1', "f", 0)],
        [fragment('{"x":1}{"x":2}', "f", 0)],
        [fragment("[1]", "f", 0)],
        [fragment([1], "f", 0)],
        [fragment(3, "f", 0)],
        [fragment("{}", index=0)],
        [fragment("{}")],
        ["f"],
        [{"function": "f"}],
        [None],
    ],
)
def test_what_is_unclear_is_never_guessed_at(fragments: list[Any]) -> None:
    with pytest.raises(ModelError) as caught:
        assemble(*fragments)
    assert caught.value.kind == "bad_call"


@pytest.mark.parametrize("arguments", ["", '{"x"'])
def test_a_call_cut_by_the_token_limit_says_so_and_is_not_made_without_arguments(arguments: str) -> None:
    with pytest.raises(ModelError, match="token limit within a call of f: raise num_predict"):
        assemble(fragment(arguments, "f", 0), reason="length")

"""Thinking told apart from the answer, whatever the pieces it comes in."""

from __future__ import annotations

import itertools

import pytest

from local.models.chat import ContentDelta, ThinkingDelta
from local.models.http import Piece, ThinkTagSplitter


def split(*pieces: str) -> list[Piece]:
    splitter = ThinkTagSplitter()
    return [*itertools.chain.from_iterable(splitter.feed(piece) for piece in pieces), *splitter.close()]


def told_apart(*pieces: str) -> tuple[str, str]:
    deltas = split(*pieces)
    thinking = "".join(delta.text for delta in deltas if isinstance(delta, ThinkingDelta))
    return thinking, "".join(delta.text for delta in deltas if isinstance(delta, ContentDelta))


LEAKS = {
    "<think>hm, 2 < 3</think>\n\nYes.": ("hm, 2 < 3", "Yes."),
    "\n<thinking>hm</thinking>Yes.": ("hm", "\nYes."),
    "<think>a</think>\n<think>b</think>Yes.": ("ab", "Yes."),
    "<|channel>thought\nhm<channel|>Yes.": ("hm", "Yes."),
    "<|channel>thought\n<channel|>Yes.": ("", "Yes."),
    "<|channel>thought<channel|>Yes.": ("", "Yes."),
    "<|channel>hm<channel|>Yes.": ("hm", "Yes."),
    "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Yes.": ("hm", "Yes."),
    "Let me see. <think>hm</think>Yes.": ("hm", "Let me see. Yes."),
    "<think>never closed": ("never closed", ""),
    "<think>closed by ``` </think>Yes.": ("closed by ``` ", "Yes."),
}


@pytest.mark.parametrize(("text", "expected"), LEAKS.items())
def test_leaked_thinking_is_told_apart_in_one_piece(text: str, expected: tuple[str, str]) -> None:
    assert told_apart(text) == expected


@pytest.mark.parametrize(("text", "expected"), LEAKS.items())
def test_a_cut_anywhere_and_single_characters_give_the_same(text: str, expected: tuple[str, str]) -> None:
    assert told_apart(*text) == expected
    for cut in range(len(text) + 1):
        assert told_apart(text[:cut], text[cut:]) == expected


UNTOUCHED = [
    "a < b and b > c, 1 << 3, <b>bold</b>",
    "`<think>` opens a block",
    "```xml\n<think>\n</think>\n```\nand so on",
    "</think> without an opening",
    "ends with <thin",
    "ends with <",
    "<|channel",
    "   indented\n",
]


@pytest.mark.parametrize("text", UNTOUCHED)
def test_text_that_only_looks_like_a_tag_is_left_alone(text: str) -> None:
    assert told_apart(text) == ("", text)
    assert told_apart(*text) == ("", text)


def test_an_answer_that_mentions_an_unclosed_tag_is_not_lost() -> None:
    thinking, content = told_apart("Models use <think> to ", "open a block.")
    assert content == "Models use <think> to open a block."
    assert thinking == " to open a block."


def test_text_passes_at_once_unless_it_may_become_a_tag() -> None:
    splitter = ThinkTagSplitter()
    assert splitter.feed("a < b") == [ContentDelta("a < b")]
    assert splitter.feed("x <") == [ContentDelta("x ")]
    assert splitter.feed(" y") == [ContentDelta("< y")]
    assert splitter.close() == []


def test_a_large_piece_full_of_angle_brackets_is_one_delta() -> None:
    text = "<" * 100_000 + "."
    assert split(text) == [ContentDelta(text)]

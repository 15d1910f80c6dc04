"""The line behind a small model's question."""

from __future__ import annotations

import pytest

from local.generator.hints import ANSWER, CALL, LONGEST, hint

TOOLS = ("search_memory", "web_search", "web_fetch", "read_file", "list_files", "write_file")


def kinds(**ahead: float) -> dict[str, float]:
    return {"": 0.1, **dict.fromkeys(TOOLS, 0.1), **ahead}


@pytest.mark.parametrize(
    ("scores", "line"),
    [
        ({**kinds(), "": 0.8}, ANSWER),
        (kinds(web_search=0.7), CALL.format(tool="web_search")),
        (kinds(web_search=0.15), ""),
        (kinds(web_search=0.7, search_memory=0.65), ""),
        ({}, ""),
    ],
    ids=["a plain question", "a search", "nothing stands out", "two are near", "the memory does not answer"],
)
def test_only_a_kind_that_is_clearly_ahead_gives_a_line(scores: dict[str, float], line: str) -> None:
    assert hint("What about it?", scores, TOOLS) == line


def test_no_tool_is_named_that_the_model_has_not_got() -> None:
    assert hint("What about it?", kinds(web_search=0.7), ["read_file"]) == ""
    assert hint("What about it?", {**kinds(), "": 0.8}, []) == ""


@pytest.mark.parametrize("address", ["https://a.example/x", "www.bakery.example", "example.org/pricing"])
def test_an_address_asks_for_its_page_even_without_a_memory(address: str) -> None:
    assert hint(f"What does {address} say?", {}, TOOLS) == CALL.format(tool="web_fetch")


@pytest.mark.parametrize("words", ["Summarise the top result for: knots", "Search the web for knots."])
def test_words_for_a_search_ask_for_one_even_without_a_memory(words: str) -> None:
    assert hint(words, {}, TOOLS) == CALL.format(tool="web_search")


def test_a_file_name_decides_for_a_tool_of_files_and_the_scores_for_which() -> None:
    scores = {**kinds(write_file=0.25), "": 0.3}
    assert hint("Put it into notes.md.", scores, TOOLS) == CALL.format(tool="write_file")
    assert hint("Put it there.", scores, TOOLS) == ""


def test_a_long_question_is_left_alone() -> None:
    assert hint("word " * LONGEST, {**kinds(), "": 0.8}, TOOLS) == ""

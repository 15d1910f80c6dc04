"""The estimate of tokens: too high to begin with, close after the server has counted."""

import json

import pytest

from local.generator.context import TextComposition, TokenMeter, size_of, size_of_message, size_of_prompt

PROSE = "The ferry leaves at noon and needs forty minutes to the island. " * 40
DATA = json.dumps([{"id": number, "at": "2024-05-17T12:00:00Z"} for number in range(60)])


def said(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def test_a_text_is_measured_in_words_symbols_and_other_characters() -> None:
    assert size_of("Ab, 12 é 渡船 🚢") == TextComposition(words=6, symbols=3, others=4)


def test_thinking_and_calls_count_too() -> None:
    calls = [{"id": "1", "function": {"name": "f", "arguments": {}}}]
    whole = size_of_message({"role": "assistant", "content": "ab", "thinking": "cd", "tool_calls": calls})
    assert whole == size_of("abcd" + json.dumps(calls)) + TextComposition(messages=1)


@pytest.mark.parametrize("text", [PROSE, DATA])
def test_after_a_few_counts_the_estimate_is_close_and_not_too_low(text: str) -> None:
    meter = TokenMeter()
    size = size_of_prompt([said(text)], [])
    counted = 4 + len(text) // 4
    for _ in range(10):
        meter = meter.corrected(size, counted)
    assert counted <= meter.tokens(size) <= counted * 1.1


def test_an_estimate_that_was_too_low_is_corrected_at_once() -> None:
    size = size_of_prompt([said(PROSE)], [])
    counted = TokenMeter().tokens(size) * 2
    assert TokenMeter().corrected(size, counted).tokens(size) >= counted


def test_kinds_of_text_are_learned_apart() -> None:
    prose, data = (size_of_prompt([said(text)], []) for text in (PROSE, DATA))
    meter = TokenMeter()
    for _ in range(30):
        meter = meter.corrected(prose, len(PROSE) // 5).corrected(data, len(DATA) // 2)
    assert meter.tokens(prose) == pytest.approx(len(PROSE) / 5, rel=0.1)
    assert meter.tokens(data) == pytest.approx(len(DATA) / 2, rel=0.1)


def test_a_server_that_leaves_out_what_it_had_cached_is_not_believed() -> None:
    size = size_of_prompt([said(PROSE)], [])
    assert TokenMeter().corrected(size, 3) == TokenMeter()
    assert TokenMeter().corrected(size, 0) == TokenMeter()


def test_after_an_overflow_the_same_prompt_counts_for_more_than_the_window() -> None:
    size = size_of_prompt([said(PROSE)], [])
    for window in (512, 100_000):
        assert TokenMeter().overflowed(size, window).tokens(size) > min(window, TokenMeter().tokens(size) * 4)


def test_characters_is_the_inverse_of_tokens() -> None:
    meter = TokenMeter()
    assert meter.characters(PROSE, meter.tokens(size_of(PROSE)) // 2) == pytest.approx(len(PROSE) / 2, rel=0.01)

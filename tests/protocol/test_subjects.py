"""Subjects are dotted words; a subscription is a byte prefix that means exactly one subject or a whole family."""

import pytest

from local.bus.message import MAX_LENGTH, is_family, is_subject, subscription


@pytest.mark.parametrize(
    "text", ["query.received", "tool.result.web_search", "x", "bus.probe.0aF-9_", "tool.request.Dice"]
)
def test_dotted_words_are_a_subject(text: str) -> None:
    assert is_subject(text)


@pytest.mark.parametrize(
    "text",
    ["", ".", "tool.", ".tool", "a..b", "a b", "a\0b", "a\n", "tool.ärger", "a/b", "\ud800", "x" * (MAX_LENGTH + 1)],
)
def test_anything_else_is_not(text: str) -> None:
    assert not is_subject(text)


def test_an_exact_subscription_ends_with_the_nul_that_ends_the_subject_in_a_frame() -> None:
    frame = b"tool.schema.request\0{}\0{}"
    assert not frame.startswith(subscription("tool.schema"))
    assert frame.startswith(subscription("tool.schema.request"))


def test_a_family_subscription_is_its_bare_prefix() -> None:
    assert subscription("tool.result.") == b"tool.result."
    assert subscription("") == b""
    assert is_family("tool.result.") and is_family("") and not is_family("tool.result")

"""Languages, words without spaces, and what of a question is worth looking for."""

import pytest

from local.memory.store import Language, content_words, indexable, language_of, terms_of


@pytest.mark.parametrize(
    "text",
    ["What is the capital of France?", "I take my coffee with oat milk", "How do I mount a disk in Linux, and why?"],
)
def test_english_is_recognised(text: str) -> None:
    assert language_of(text) is Language.ENGLISH


@pytest.mark.parametrize(
    "text",
    [
        "Wie spät ist es in der Stadt?", "Où est la gare de Lyon, et comment y aller?", "¿Cómo se dice esto en inglés?",
        "Hoe laat is het in Amsterdam?", "我喜欢喝乌龙茶", "Где мой ключ?", "kubectl", "",
    ],
)  # fmt: skip
def test_what_is_not_surely_english_is_not_stemmed(text: str) -> None:
    assert language_of(text) is Language.OTHER


def test_a_question_is_looked_for_by_its_telling_words() -> None:
    assert terms_of("What did I tell you about the coffee, and the Coffee machine?") == ["coffee", "machine"]
    assert terms_of("who is it") == ["who", "is", "it"]


def test_scripts_without_spaces_are_looked_for_in_pairs() -> None:
    assert terms_of("乌龙茶 tea") == ["乌龙", "龙茶", "tea"]
    assert indexable("喝乌龙") == " 喝 乌 龙 喝乌 乌龙 "
    assert indexable("tea and Käse") == "tea and Käse"


def test_content_words_leave_out_what_every_text_has() -> None:
    assert content_words("The coffee is black, and the tea is not") == {"coffee", "black", "tea"}

"""Which words of a search are not told to the search engine: the rule alone, without a model, tools or a bus."""

from __future__ import annotations

import base64
import string
from collections.abc import Callable

import pytest

from local.generator.taint_policy import PrivateWords

PRIVATE = (
    "My vault code is KX-4471-Q, the door opens with 9034. I live at 17 Elm Grove, Leith.",
    "Write to ada.byron@mail.example or call +44 131 496 0172. My son Theo plays chess on Thursdays in Leith.",
    "秘密の合言葉は月夜の灯台です",
)
SPOKEN = ("What is on in Leith this week?", "My flight is BA1437.", "Does my son Theo play chess on Sundays?")


def refused(query: str, *, spoken: tuple[str, ...] = SPOKEN, public: str = "") -> bool:
    return bool(PrivateWords(PRIVATE, spoken, public).found_in(query))


@pytest.mark.parametrize(
    "query",
    [
        "9034",
        "what does 9034 mean",
        "KX-4471-Q",
        "kx4471q",
        "KX 4471 Q",
        "prefix-KX4471Q-suffix",
        "K X 4 4 7 1 Q",
        "4471",
        "ada.byron@mail.example",
        "ada.byron@mail.example.",
        "0131 496 0172 +44 131 496 0172",
        "the door opens with",
        "THE DOOR, OPENS WITH!",
        "news: my vault code is",
        "合言葉は月夜の灯台です",
    ],
)
def test_numbers_codes_addresses_and_four_words_in_a_row_are_found(query: str) -> None:
    assert refused(query)


MATHEMATICAL = "".join(map(chr, (*range(0x1D41A, 0x1D434), *range(0x1D400, 0x1D41A))))
MATH, WIDE = str.maketrans(string.ascii_letters, MATHEMATICAL), {each: each + 0xFEE0 for each in range(0x21, 0x7F)}
ALPHABETS: dict[str, Callable[[str], str]] = {
    "full width": lambda text: text.translate(WIDE),
    "mathematical": lambda text: text.translate(MATH),
    "Arabic-Indic digits": lambda text: text.translate(str.maketrans(string.digits, "٠١٢٣٤٥٦٧٨٩")),
    "Devanagari digits": lambda text: text.translate(str.maketrans(string.digits, "०१२३४५६७८९")),
    "Cyrillic": lambda text: text.translate(str.maketrans("aeopcyxkmtbhiXKT", "аеорсухкмтвніХКТ")),
    "Greek": lambda text: text.translate(str.maketrans("aopvtuikeKXT", "αορντυικεΚΧΤ")),
    "marks": lambda text: "".join(f"{each}\u0336" for each in text),
    "accents": lambda text: text.translate(str.maketrans("aeiou", "áèîõü")),
    "nothing between": lambda text: "\u200b".join(text),
}


@pytest.mark.parametrize("alphabet", ALPHABETS)
@pytest.mark.parametrize("text", ["9034", "KX-4471-Q", "my vault code is", "+44 131 496 0172"])
def test_private_words_are_found_in_whatever_alphabet_they_are_written(alphabet: str, text: str) -> None:
    written = ALPHABETS[alphabet](text)
    assert refused(written) and refused(f"what about {written} now")
    assert PrivateWords([written], []).found_in(text), "nor is it found the other way round"


ENCODED: dict[str, Callable[[str], str]] = {
    "hex": lambda text: text.encode().hex(),
    "hex with spaces": lambda text: text.encode().hex(" "),
    "percent": lambda text: "".join(f"%{each:02x}" for each in text.encode()),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 of addresses": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
    "hyphens": "-".join,
    "dots": ".".join,
    "spaces": " ".join,
    "in math, with lines": lambda text: "_".join(text.translate(MATH)),
}


@pytest.mark.parametrize("encoding", ENCODED)
@pytest.mark.parametrize("text", ["Thursdays", "vault", "KX4471Q", "ada.byron"])
def test_one_encoded_word_is_enough(encoding: str, text: str) -> None:
    assert refused(ENCODED[encoding](text)) and refused(f"what is {ENCODED[encoding](text)} in it")


@pytest.mark.parametrize(
    "query",
    [
        "Leith",
        "e.g. U.S.A. or a b c d e f g",
        "sha256 of deadbeefcafebabe",
        "color #c0ffee00 #12345678",
        "Theaterprogramm München",
        "internationalization and Wahrscheinlichkeitsrechnung",
        "погода в Москве на завтра",
        "καιρός στην Αθήνα αύριο",
        "東京の天気",
        "résumé café naïve",
        "A-B-C-D tests",
        "X-R-A-Y",
        "chess clubs in Leith",
        "vault code locks",  # single words, and fewer than four in a row
        "opens with",
        "Elm Grove history",
        "weather on Thursdays",
        "Theo name meaning",
        "2026 election results",  # a number that is in nothing private
        "B-52 bomber",
        "python 3.12 release",
        "月夜",
        "",
    ],
)
def test_plain_words_and_what_is_not_private_pass(query: str) -> None:
    assert not refused(query)


@pytest.mark.parametrize("query", ["BA1437", "flight BA1437 status", "my son Theo play chess on Sundays"])
def test_what_the_user_has_said_in_this_conversation_is_theirs(query: str) -> None:
    private = (*PRIVATE, "My flight is BA1437. Does my son Theo play chess on Sundays?")
    assert PrivateWords(private, SPOKEN).found_in(query) == []
    assert PrivateWords(private, ()).found_in(query) != []


def test_what_stands_in_every_prompt_tells_nothing() -> None:
    private = ("The meeting is on Sunday, 22 November 2026.",)
    assert PrivateWords(private, (), "Today is Sunday, 22 November 2026.").found_in("events 22 November 2026") == []
    assert PrivateWords(private, ()).found_in("events 22 November 2026") == ["22", "2026"]


def test_each_word_is_named_once() -> None:
    assert PrivateWords(PRIVATE, ()).found_in("9034 and 9034 again") == ["9034"]


def test_a_key_is_known_by_its_form_wherever_it_comes_from() -> None:
    key = "sk-proj-AbCdEf0123456789AbCdEf0123456789"
    assert refused(f"what is {key}")
    assert not refused(f"what is {key}", spoken=(f"what is {key}",))

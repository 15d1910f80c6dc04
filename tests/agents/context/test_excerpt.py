"""A long text made short: head, what the question is about, and marks."""

import re

from hypothesis import given
from hypothesis import strategies as st

from local.core.excerpts import MARK_ROOM, excerpt, rank

FILLER = "\n\n".join(f"Paragraph {number} says nothing about it at all." for number in range(100))
FACT = "The night ferry carries 214 passengers and six cars."
TEXT = f"Ferries of the north\n\n{FILLER}\n\n{FACT}\n\n{FILLER}"
MARK = re.compile(r"\[… ([\d,]+) characters left out …\]\n?")


def test_a_text_that_fits_is_not_touched() -> None:
    assert excerpt(TEXT, "ferry", len(TEXT)) == TEXT


def test_what_the_question_is_about_is_found_in_the_middle_and_the_head_is_kept() -> None:
    short = excerpt(TEXT, "How many passengers does the ferry carry?", 600)
    assert short.startswith("Ferries of the north")
    assert FACT in short
    assert len(short) <= 600


def test_each_cut_is_marked_with_its_length() -> None:
    short = excerpt(TEXT, "passengers", 600)
    kept = len(MARK.sub("", short).replace("\n", ""))
    left_out = sum(int(number.replace(",", "")) for number in MARK.findall(short))
    assert len(MARK.findall(short)) == 2
    assert len(TEXT) - left_out - TEXT.count("\n") <= kept <= len(TEXT) - left_out


def test_a_question_that_nothing_has_to_do_with_gets_the_beginning() -> None:
    short = excerpt(TEXT, "Warum?", 600)
    assert TEXT.startswith(short[:400])


def test_a_long_paragraph_is_parted_after_a_sentence() -> None:
    text = " ".join(f"Sentence number {number} is here." for number in range(400)) + " The ferry sinks."
    assert "is here. The ferry sinks." in excerpt(text, "ferry", 800)


def test_the_younger_of_equals_ranks_first() -> None:
    assert rank(["a dog", "a cat", "a dog"], "dogs") == [2, 0, 1]
    assert rank([], "dogs") == []


@given(text=st.text(max_size=3000), question=st.text(max_size=40), limit=st.integers(MARK_ROOM, 1500))
def test_whatever_the_text_is_the_excerpt_is_not_longer_than_asked(text: str, question: str, limit: int) -> None:
    assert len(excerpt(text, question, limit)) <= limit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.core.excerpts import next_start, part_end


@pytest.mark.parametrize(
    ("text", "limit", "part"),
    [
        ("One two. Three four. Five six seven.", 25, "One two. Three four."),
        ('He said "No." Then he left us all.', 20, 'He said "No."'),
        ("Version 3.14 is out. And then some more.", 22, "Version 3.14 is out."),
        ("Sentence ends exactly. Here.", 22, "Sentence ends exactly."),
        ("A headline\nand a text without an end", 16, "A headline"),
        ("words and words and words", 17, "words and words"),
        ("これは文です。これも文です。もう一つ", 16, "これは文です。これも文です。"),
        ("short", 100, "short"),
        ("abcdefghij", 4, "abcd"),
    ],
)
def test_a_part_ends_after_a_sentence_else_after_a_word_else_at_the_limit(text, limit, part):
    assert text[: part_end(text, 0, limit)] == part


@pytest.mark.parametrize(
    ("text", "limit", "part"),
    [
        ("aaae\u0301bbb", 4, "aaa"),
        ("aa\U0001f469\u200d\U0001f4bbbbb", 4, "aa"),
        ("aaa\U0001f44d\U0001f3fdbbb", 4, "aaa"),
        ("aaa\ud83d\ude00bbb", 4, "aaa"),
    ],
)
def test_a_part_never_ends_inside_a_character(text, limit, part):
    assert text[: part_end(text, 0, limit)] == part


@given(text=st.text(alphabet='ab .\n\u0301\u200d。"', max_size=300), limit=st.integers(1, 50))
def test_the_parts_of_any_text_are_within_the_limit_and_leave_out_only_white_space(text, limit):
    start, rest = next_start(text, 0), text
    while start is not None:
        end = part_end(text, start, limit)
        assert start < end <= start + limit
        assert rest[: start - (len(text) - len(rest))].isspace() or rest == text[start:]
        rest, start = text[end:], next_start(text, end)
    assert not rest.strip()

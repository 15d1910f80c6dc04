"""JSON as the protocol allows it: one meaning for every reader, whatever language that reader is written in."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.bus.message import MAX_DEPTH, parse_object
from local.core.errors import MalformedFrame

REFUSED = {
    "nothing": b"",
    "white space": b"  ",
    "an array": b"[]",
    "a number": b"1",
    "a string": b'"a"',
    "null": b"null",
    "NaN": b'{"a":NaN}',
    "Infinity": b'{"a":Infinity}',
    "-Infinity": b'{"a":-Infinity}',
    "a float that overflows": b'{"a":1e999}',
    "a negative float that overflows": b'{"a":[-1e999]}',
    "a float of 400 digits": b'{"a":1' + b"0" * 400 + b".0}",
    "an integer of 5,000 digits": b'{"a":' + b"9" * 5000 + b"}",
    "a lone high surrogate": rb'{"a":"\ud800"}',
    "a lone low surrogate": rb'{"a":"\udc00"}',
    "a surrogate pair in the wrong order": rb'{"a":"\udc00\ud800"}',
    "a surrogate in UTF-8": b'{"a":"\xed\xa0\x80"}',
    "a lone surrogate in a key": rb'{"\ud800":1}',
    "bytes that are no UTF-8": b'{"a":"\xff"}',
    "a byte order mark": b"\xef\xbb\xbf{}",
    "UTF-16": '{"a":1}'.encode("utf-16"),
    "a raw control character": b'{"a":"\x01"}',
    "something after the value": b"{} {}",
    "a trailing comma": b'{"a":1,}',
    "single quotes": b"{'a':1}",
    "a comment": b'{"a":1}//',
    "a leading zero": b'{"a":01}',
    "an open object": b'{"a":1',
    "a number as key": b"{1:2}",
}
DUPLICATES = {
    "plain": b'{"a":1,"a":2}',
    "apart": b'{"a":1,"b":2,"a":3}',
    "white space before one colon": b'{"a" :1,"a":2}',
    "white space before both colons": b'{"a" :1,"a"\t:2}',
    "a line break before a colon": b'{"a"\r\n:1,"a"\n:2}',
    "nested": b'{"x":{"a":1,"a":2}}',
    "nested in an array": b'{"x":[0,{"a":1,"a":2}]}',
    "one key escaped": rb'{"a":1,"\u0061":2}',
    "beside a string that looks like a key": rb'{"a":1,"a":"\":"}',
    "an empty key": b'{"":1,"":2}',
    "equal values": b'{"a":1,"a":1}',
}
ALLOWED = {
    "a string that looks like a key": {"text": '{"a":1,"a":2} and "b" : too'},
    "the end of a string and a colon": {"a": 'x"', "b": ':"'},
    "the same key at different levels": {"a": {"a": [{"a": 1}, {"a": 2}]}},
    "an escaped surrogate pair": {"a": "\U0001f600"},
    "numbers at the edge": {"a": [1.7976931348623157e308, -5e-324, 2**63, -(2**64), 0, -0.0]},
    "NaN and Infinity as text": {"a": "NaN", "b": "Infinity"},
    "an escaped NUL": {"a": "\0"},
    "an integer of 4,300 digits": {"a": 10**4299},
}


def nested(levels: int) -> bytes:
    """An object of that many levels."""
    return b'{"a":' * levels + b"1" + b"}" * levels


def test_text_that_parsers_could_read_differently_is_refused() -> None:
    for what, data in REFUSED.items():
        with pytest.raises(MalformedFrame, match="header: "):
            pytest.fail(f"{what} is read as {parse_object(data, 'header')}")
    for what, data in DUPLICATES.items():
        with pytest.raises(MalformedFrame, match=" occurs twice"):
            pytest.fail(f"{what} is read as {parse_object(data, 'payload')}")


def test_a_fault_is_told_with_its_place() -> None:
    for text in (r"\ud800", r"\ud800y", r"\udc00", r"\ud800\ud800", r"\ud83d\n"):
        with pytest.raises(
            MalformedFrame, match=r"^body: not JSON: half of a surrogate pair.* at line 2 column \d+: write"
        ):
            parse_object(b'{\n"query": "' + text.encode() + b'"}', "body")
    with pytest.raises(MalformedFrame, match=r"^body: not JSON: bytes that are no UTF-8 at line 1 column 12$"):
        parse_object(b'{"query":"x\xff"}', "body")
    key = b'"' + b"k" * 100_000 + b'":0'
    with pytest.raises(MalformedFrame) as caught:
        parse_object(b"{" + key + b"," + key + b"}", "payload")
    assert len(str(caught.value)) < 200


def test_text_that_only_looks_wrong_is_read() -> None:
    for value in ALLOWED.values():
        for separators in ((",", ":"), (" , ", " : ")):
            for ascii_only in (True, False):
                data = json.dumps(value, separators=separators, ensure_ascii=ascii_only).encode()
                assert parse_object(data, "payload") == value


def test_nesting_is_allowed_up_to_32_levels() -> None:
    assert parse_object(nested(MAX_DEPTH), "payload")
    for levels in (MAX_DEPTH + 1, 250, 100_000):
        for deep in (nested(levels), b'{"a":' + b"[" * levels + b"]" * levels + b"}"):
            with pytest.raises(MalformedFrame):
                parse_object(deep, "payload")


@pytest.mark.timeout(60)
def test_a_duplicate_at_the_end_of_a_megabyte_of_keys_is_found_at_once() -> None:
    keys = [f'"{number}":0' for number in range(90_000)]
    with pytest.raises(MalformedFrame, match="'89999' occurs twice"):
        parse_object(("{" + ",".join([*keys, keys[-1]]) + "}").encode(), "payload")


texts = st.text(st.sampled_from('ab"\\\x7f\x1f/ü\u2028\uffff😀{}[]:,'), max_size=6)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(texts, values, max_size=3), st.booleans(), st.sampled_from([(",", ":"), (", ", ": "), (" ,", " :")])
)
def test_it_agrees_with_the_standard_library_on_what_is_valid(
    value: dict[str, object], ascii_only: bool, separators: tuple[str, str]
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, separators=separators)
    assert parse_object(text.encode(), "payload") == json.loads(text) == value


@given(st.binary(max_size=60) | st.text('{}[]",:\\u0ad8NIf1e9- \t').map(str.encode))
def test_it_raises_nothing_but_malformed_frame(data: bytes) -> None:
    try:
        value = parse_object(data, "payload")
    except MalformedFrame:
        return
    assert value == json.loads(data)

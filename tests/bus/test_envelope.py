"""One frame is one envelope; whatever else arrives is refused by name and never raises anything unexpected."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.bus.envelope import MAX_FRAME, MAX_HEADER, VERSION, Envelope, Trace, decode, in_session_of_payload
from local.core.errors import FrameTooLarge, MalformedFrame, UnsendableMessage, UnsupportedVersion

HEADER: dict[str, Any] = {
    "v": 1, "id": "e1", "subject": "query.received", "sender": "api", "instance": "i1", "seq": 1,
    "correlation_id": "q1",
}  # fmt: skip
WRONG: dict[str, list[Any]] = {
    "id": [None, 1, ["e1"]],
    "sender": [None, {}, 5],
    "instance": [None, False],
    "seq": [None, 0, -1, True, 1.0, "1", 2**63, 10**4000],
    "correlation_id": [None, 7],
    "subject": [None, 7, "", "query", "query.failed", "Query.received", "query.received "],
    "cause_id": [1, True],
    "in_reply_to": [1, []],
    "session_id": [1, {}],
    "user_id": [1, 0.5],
    "sent_at": ["now", True, -1, 1e12, 10**4000],
    "ttl_ms": ["1", 1.5, True, -1, 10**400],
    "v": [None, "1", True, 1.0],
}


def frame(_before: bytes = b"query.received", _payload: bytes = b"{}", **changes: Any) -> bytes:
    """A frame whose header is `HEADER` with changes."""
    return b"\0".join([_before, json.dumps(HEADER | changes).encode(), _payload])


def envelope(**changes: Any) -> Envelope:
    """An envelope with the fields that must be there."""
    return Envelope("query.received", "e1", "api", "i1", 1, "q1", b"{}")._replace(**changes)


def test_a_frame_is_subject_header_and_payload_between_two_nuls() -> None:
    subject, header, payload = envelope(payload=b'{"a":"\\u0000"}').encode().split(b"\0")
    assert (subject, payload) == (b"query.received", b'{"a":"\\u0000"}')
    assert json.loads(header) == HEADER | {"sent_at": 0.0}


def test_null_fields_are_left_out_and_unknown_ones_ignored() -> None:
    sealed = envelope()
    assert b"null" not in sealed.encode()
    assert decode(sealed.encode()) == sealed
    nulls = dict.fromkeys(["cause_id", "in_reply_to", "session_id", "user_id", "sent_at", "ttl_ms"])
    assert decode(frame(**nulls, colour="green", deep={"a": [1]})) == sealed
    assert decode(frame(_payload=b"\xff not JSON at all")).payload == b"\xff not JSON at all"
    asked = envelope(id="e7", correlation_id="q1", session_id="s", user_id="u")
    assert asked.trace() == Trace("q1", "e7", "s", "u")


def test_another_version_is_refused_with_both_versions_named() -> None:
    with pytest.raises(UnsupportedVersion, match=r"version 2.*version 1") as caught:
        decode(frame(v=2))
    assert (caught.value.theirs, caught.value.ours) == (2, VERSION)
    for data in (frame(v=0), frame(v=-1), b'query.received\0{"v":2}\0{}'):
        with pytest.raises(UnsupportedVersion):
            decode(data)


def test_a_header_field_of_the_wrong_kind_or_a_missing_one_is_refused() -> None:
    for field, values in WRONG.items():
        for value in values:
            with pytest.raises(MalformedFrame, match=r"header|subject|version") as caught:
                pytest.fail(f"{field}={value!r} is read as {decode(frame(**{field: value}))}")
            assert len(str(caught.value)) < 200
    for field in HEADER:
        header = {name: value for name, value in HEADER.items() if name != field}
        with pytest.raises(MalformedFrame, match=rf"\b{field}\b"):
            decode(b"query.received\0" + json.dumps(header).encode() + b"\0{}")


def test_a_header_key_that_is_there_twice_is_refused() -> None:
    header = json.dumps(HEADER)
    with pytest.raises(MalformedFrame, match=" occurs twice"):
        decode(b"query.received\0" + header.replace('"seq": 1', '"seq": 1, "seq": 2').encode() + b"\0{}")


def test_a_frame_of_other_parts_or_under_another_subject_is_refused() -> None:
    for data in (b"", b"\0", b"query.received", b"a\0b", b"a\0b\0c\0d", b"\0" * 100):
        with pytest.raises(MalformedFrame):
            decode(data)
    for subject in (b"", b"query", b"query.received.x", b"tool.result.x", b"\xff\xfe"):
        with pytest.raises(MalformedFrame, match="differs from the one"):
            decode(frame(subject))


def test_nesting_in_the_header_is_refused() -> None:
    deep: Any = 0
    for _ in range(100):
        deep = [deep]
    with pytest.raises(MalformedFrame):
        decode(frame(extra=deep))


def test_a_frame_of_exactly_one_mebibyte_is_the_largest() -> None:
    room = MAX_FRAME - len(envelope(payload=b"").encode())
    largest = envelope(payload=b"x" * room)
    assert decode(largest.encode()) == largest
    with pytest.raises(FrameTooLarge, match=f"a message query.received of {MAX_FRAME + 1:,} bytes"):
        largest._replace(payload=b"x" * (room + 1)).encode()
    with pytest.raises(MalformedFrame, match=str(MAX_FRAME)):
        decode(largest.encode() + b"x")


def test_a_header_beyond_8_kilobytes_is_refused_on_both_sides() -> None:
    long = "s" * MAX_HEADER
    with pytest.raises(MalformedFrame, match="header of"):
        decode(frame(session_id=long))
    with pytest.raises(UnsendableMessage, match="header of"):
        envelope(session_id=long).encode()


def test_a_header_that_is_no_unicode_is_refused_at_the_sender() -> None:
    with pytest.raises(UnsendableMessage):
        envelope(session_id="\ud800").encode()


words = st.text(st.sampled_from('aB0 "\\\x7f\x1f/ü\u2028\uffff😀{}'), max_size=9)
envelopes = st.builds(
    Envelope,
    subject=st.lists(st.text(st.sampled_from("az09_-"), min_size=1, max_size=5), min_size=1, max_size=4).map(".".join),
    id=words, sender=words, instance=words, seq=st.integers(1, 2**63 - 1), correlation_id=words,
    payload=st.binary(max_size=50).map(lambda data: data.replace(b"\0", b"")),
    cause_id=st.none() | words, in_reply_to=st.none() | words, session_id=st.none() | words, user_id=st.none() | words,
    sent_at=st.floats(0, 4e9), ttl_ms=st.none() | st.integers(0, 10**9), v=st.just(VERSION),
)  # fmt: skip


@given(envelopes)
def test_what_is_encoded_decodes_to_the_same(sealed: Envelope) -> None:
    assert decode(sealed.encode()) == sealed


@given(
    st.binary(max_size=80)
    | st.tuples(st.binary(max_size=20), st.binary(max_size=60)).map(lambda two: b"\0".join([*two, b""]))
)
def test_no_bytes_raise_anything_but_malformed_frame(data: bytes) -> None:
    with pytest.raises(MalformedFrame):
        decode(data)


@given(st.data())
def test_a_damaged_frame_is_read_or_refused_and_nothing_else(data: st.DataObject) -> None:
    good = bytearray(frame(session_id="s", sent_at=1.5))
    for _ in range(data.draw(st.integers(1, 3))):
        good[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(MalformedFrame):
        assert isinstance(decode(bytes(good)), Envelope)


def query(payload: bytes, session_id: str | None = None) -> Envelope:
    return Envelope("query.received", "e", "client", "i", 1, "q", payload, session_id=session_id)


SESSIONS: list[tuple[bytes, str | None, str | None]] = [
    (b'{"query_id":"q","query":"?","session_id":"s"}', None, "s"),
    (b'{"query_id":"q","query":"?","session_id":"s"}', "header", "header"),
    (b'{"query_id":"q","query":"?"}', None, None),
    (b'{"query_id":"q","query":"?","session_id":null}', None, None),
    (b'{"query_id":"q","query":"?","session_id":""}', None, None),
    (b'{"query_id":"q","query":"?","session_id":7}', None, None),
    (b'{"query_id":"q","query":{"session_id":"x"}}', None, None),
    (b'{"session_id":"%b"}' % (b"x" * 600), None, None),
    (b'{"session_id":"s","query":"%b"}' % (b"x" * (MAX_FRAME - 100)), None, None),
    (b'["session_id"]', None, None),
    (b'{"session_id"', None, None),
    (b'{"session_id":"\\ud800"}', None, None),
]


def test_the_session_of_a_payload_counts_where_the_header_has_none() -> None:
    for payload, in_header, expected in SESSIONS:
        found = in_session_of_payload(query(payload, in_header))
        assert found.session_id == expected, payload[:60]
        if len(payload) < MAX_FRAME // 2:
            assert decode(found.encode()).session_id == expected

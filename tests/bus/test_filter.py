"""The filter language: what an expression matches, subscribes to, refuses and is completed by."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.bus.envelope import Envelope
from local.bus.filter import BadFilter, Filter, completions, quoted
from local.bus.message import covers


def message(id: str, subject: str, sender: str, payload: Any, query: str = "q1", **more: Any) -> Envelope:
    content = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return Envelope(subject, id, sender, f"i-{sender}-{id}", 1, query, content, **{"sent_at": 1e9 + len(id), **more})


ERROR = {"kind": "timeout", "message": 'no "answer"\nat all'}
BEAT = {"name": "critic", "kind": "observer", "pid": 1, "instance": "i-critic-beat", "state": "ready", "last_seq": {}}
CALLS = [{"tool": "web_search", "duration_ms": 120}, {"tool": "web_fetch", "duration_ms": 9000}]
MESSAGES = [
    message("ask", "query.received", "api", {"query": "What is the tallest tree?"}, session_id="s1"),
    message("call", "tool.request.web_search", "generator", {"args": {"query": "tallest tree"}}, session_id="s1"),
    message("hit", "tool.result.web_search", "web_search", {"result": "Hyperion, 116", "error": None}, cause_id="call"),
    message("late", "tool.result.web_fetch", "web_fetch", {"result": None, "error": ERROR}, in_reply_to="call2"),
    message(
        "answer", "response.generation", "generator", {"answer": "Hyperion" + " " * 70_000, "tool_calls": CALLS},
        session_id="s1",
    ),
    message("rated", "user.feedback", "api", {"rating": 1, "comment": ""}, session_id="s1"),
    message("ask2", "query.received", "api", {"query": "Straße?"}, "q2", session_id="s2", user_id="ann"),
    message("failed", "query.failed", "generator", {"error": {"kind": "queue_full"}}, "q2", user_id="ann"),
    message("gap", "bus.gap", "critic", {"missed": 12, "observer": "critic"}, ""),
    message("note", "garden.note", "garden", b"no JSON, only words", "72ec"),
    message("token", "generation.token", "generator", {"text": "Hyper", "index": 0}, session_id="s1"),
    message("beat", "participant.status", "critic", BEAT, ""),
    message("lease", "model.lease.claim", "critic", {}, ""),
]  # fmt: skip
UNRECORDED = {"note", "token", "beat", "lease"}  # the note because it is not JSON
EVERYTHING = {each.id for each in MESSAGES}
ROUTINE = EVERYTHING - {"beat", "lease"}
TOOLS = {"call", "hit", "late"}
EXPRESSIONS: dict[str, set[str]] = {
    "": ROUTINE,
    "subject:*": EVERYTHING,
    'subject:""': EVERYTHING,
    "subject:tool.": TOOLS,
    "subject:tool.*": TOOLS,
    "subject:tool": set(),
    "subject:tool.*.web_search": {"call", "hit"},
    "subject:*.web_*": TOOLS,
    "subject:query.received,bus.": {"ask", "ask2", "gap"},
    "subject=tool.": set(),
    "subject!=query.received": ROUTINE - {"ask", "ask2"},
    "subject:participant.status": {"beat"},
    "-subject:tool.*": ROUTINE - TOOLS,
    "sender:generator": {"call", "answer", "failed", "token"},
    "sender:web_*": {"hit", "late"},
    "sender:critic": {"gap"},
    "sender:critic subject:*": {"gap", "beat", "lease"},
    "subject:tool.* -sender:generator": {"hit", "late"},
    "participant:web_search": {"call", "hit"},
    "query:q1": {"ask", "call", "hit", "late", "answer", "rated", "token"},
    "query:q": ROUTINE - {"gap", "note"},
    "query=q": set(),
    "query:72ec": {"note"},
    "session:s1 subject:query.": {"ask"},
    "session:s": {"ask", "call", "answer", "rated", "ask2", "token"},
    "-session:s": {"hit", "late", "failed", "gap", "note"},
    "user:ann": {"ask2", "failed"},
    "user:owner sender:api": {"ask", "rated"},
    "cause:call or reply:call2": {"hit", "late"},
    "id:ask": {"ask", "ask2"},
    "instance:i-web_f": {"late"},
    "size>64k": {"answer"},
    "size<20": {"note"},
    "time>2001-09-09T01:46:45+00:00": {"answer", "failed"},
    "payload.error.kind=timeout": {"late"},
    "payload.error:timeout,queue": {"late", "failed"},
    "payload.error:*": {"late", "failed"},
    "payload.rating=1 payload.comment=\"\"": {"rated"},
    "payload.missed>=12": {"gap"},
    "payload.tool_calls.tool=web_fetch": {"answer"},
    "payload.tool_calls.0.tool:WEB payload.tool_calls.1.duration_ms>5k": {"answer"},
    "hyperion": {"hit", "answer"},
    '"Tallest tree"': {"ask", "call"},
    r'"no \"answer\""': {"late"},
    "STRASSE": {"ask2"},
    "words": {"note"},
    "not (sender:generator or subject:tool.) query:q1": {"ask", "rated"},
    "sender:api (116 OR session:s2) or size>1M": {"ask2"},
    "sender:api and not user:ann": {"ask", "rated"},
}  # fmt: skip


def matched(text: str) -> set[str]:
    wanted = Filter(text)
    return {each.id for each in MESSAGES if wanted.matches(each)}


@pytest.mark.parametrize(("text", "expected"), EXPRESSIONS.items())
def test_an_expression_matches_these_messages(text: str, expected: set[str]) -> None:
    assert matched(text) == expected


@pytest.mark.parametrize(
    ("text", "position", "said"),
    [
        ("sendr:x", 0, "no field 'sendr'; use sender"),
        ("a http://x", 2, "put text to search for in quotes"),
        ("payload.=3", 0, "or payload.NAME"),
        ('x subject:"a b"', 2, "subject 'a b': expected a subject (query.received), a family (tool.)"),
        ("subject:Tool", 0, "expected a subject"),
        ("sender>5", 0, "sender has no operator >; use one of : = !=, as in sender:generator"),
        ("size>big", 0, "expected a number, such as 500, 64k or 1.5M"),
        ("time>noon", 0, "expected a time, such as 2026-05-01T12:00"),
        ("x (sender:a", 2, "this ( is not closed; add )"),
        ("sender:a)", 8, "this ) closes nothing"),
        ("sender: a", 7, "a value is missing after sender:"),
        ("sender:a,", 8, "a value is missing after sender:a"),
        ('x "abc', 2, 'this " is not closed'),
        ("a or", 4, "a term is missing here; write one, such as subject:tool.*"),
        ("a and or b", 6, "a term is missing here"),
        ("(" * 60 + "a" + ")" * 60, 51, "nested more than 50 deep"),
        ("x" * 5000, 4000, "at most 4000 characters"),
    ],
)
def test_a_bad_filter_is_refused_with_the_place_and_what_would_be_right(text: str, position: int, said: str) -> None:
    with pytest.raises(BadFilter) as refused:
        Filter(text)
    assert refused.value.position == position
    assert f"character {position + 1}: " in str(refused.value) and said in str(refused.value)


@pytest.mark.parametrize(
    ("text", "subscriptions"),
    [
        ("", [""]),
        ("subject:tool.,tool.request.web_search,tool.*.x", ["tool."]),
        ("subject:tool.schema,tool.schema.request", ["tool.schema", "tool.schema.request"]),
        ("subject:gen*,bus.gap", [""]),
        ("subject:tool.re*.web_search or subject:bus.gap", ["bus.gap", "tool."]),
        ("subject:tool. subject:tool.result.,query. size>5", ["tool.result."]),
        ("subject:tool. or sender:api", [""]),
        ("-subject:tool.", [""]),
    ],
)
def test_it_subscribes_to_no_more_than_it_needs_and_to_nothing_twice(text: str, subscriptions: list[str]) -> None:
    assert Filter(text).subscriptions() == subscriptions


def test_a_loss_matters_only_where_the_subject_could_have_matched() -> None:
    subjects = ["tool.result.x", "query.received", "participant.status"]
    for text, expected in [
        ("", [True, True, False]),
        ("subject:tool.* size>5", [True, False, False]),
        ("-subject:tool.*", [False, True, False]),
        ("sender:a or subject:tool.*", [True, True, True]),
        ("-(sender:a subject:tool.*)", [True, True, False]),
    ]:
        assert [Filter(text).may_match(subject) for subject in subjects] == expected


def test_filters_are_combined_and_give_the_values_by_which_a_store_can_search() -> None:
    both = Filter("subject:tool. or subject:query.") & Filter.of("query", ["q1"], "=")
    assert (both.exact("query"), both.exact("session")) == ("q1", None)
    assert {each.id for each in MESSAGES if both.matches(each)} == {"ask", "call", "hit", "late"}
    assert Filter("query=q1 or query=q2").exact("query") is None
    with pytest.raises(BadFilter, match=r"^subject 'a b': expected"):
        Filter.of("subject", ["a b"])


TERMS = st.sampled_from([text for text in EXPRESSIONS if text])


@given(TERMS, TERMS, st.sampled_from(MESSAGES))
def test_whatever_matches_was_subscribed_to_and_every_operator_means_what_it_says(
    one: str, other: str, envelope: Envelope
) -> None:
    a, b = (Filter(f"subject:* ({text})").matches(envelope) for text in (one, other))
    for text, expected in (("{} or {}", a or b), ("{} {}", a and b), ("-{} and {}", not a and b)):
        wanted = Filter("subject:* (" + text.format(f"({one})", f"({other})") + ")")
        assert wanted.matches(envelope) == expected
        if expected:
            assert wanted.may_match(envelope.subject)
            assert any(covers(subject, envelope.subject) for subject in wanted.subscriptions())


@given(st.text(max_size=30))
def test_any_value_can_be_written_and_any_text_is_read_or_refused(text: str) -> None:
    assert Filter(f"payload.x={quoted(text)}").matches(message("x", "a.b", "c", {"x": text}))
    try:
        Filter(text)
    except BadFilter as error:
        assert error.position is not None and 0 <= error.position <= len(text)


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("", "subject:"),
        ("sender:critic -sub", "sender:critic -subject:"),
        ("(participant:me", "(participant:memory_tools"),
        ("subject:query.received,response.", "subject:query.received,response.generation"),
        ("payload.err", "payload.error"),
    ],
)
def test_the_last_word_is_completed(typed: str, offered: str) -> None:
    assert offered in [each.text for each in completions(typed, ["critic", "memory_tools"])]
    assert completions("sender:x") == completions('"words of') == []

"""How a tap shows envelopes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from local.bus.blobs import BlobStore
from local.bus.envelope import Envelope
from local.cli.main import visible
from local.cli.tap import HOLD_SECONDS, FieldView, HumanView, JsonView, View
from local.critic.messages import CritiqueResult, PairwiseResult, RewardEvent, UserFeedback
from local.memory.messages import MemoryAnnotated, MemoryDeleted, MemoryIngested, MemoryRequest, MemoryResult, UserFacts

QUERY = "3f2a1b9c" * 4


def envelope(subject: str = "query.received", payload: Any = None, **header: Any) -> Envelope:
    data = payload if isinstance(payload, bytes) else json.dumps(payload or {}).encode()
    return Envelope(subject, "id", "api", "instance", 1, QUERY, data)._replace(**header)


def token(text: str, *, subject: str = "generation.token", query: str = QUERY, respondent: str = "A") -> Envelope:
    payload = {"query_id": query, "respondent_id": respondent, "attempt": 1, "index": 0, "text": text}
    return envelope(subject, payload, sender="generator", correlation_id=query)


def human(*, width: int | None = None, **options: bool) -> HumanView:
    return HumanView(width=lambda: width, **options)


def shown(view: View[Envelope], envelopes: Sequence[Envelope], now: float = 0.0) -> list[str]:
    return [line for item in envelopes for line in view.lines(item, now)]


def test_a_line_has_time_subject_sender_short_correlation_and_payload() -> None:
    [line] = shown(human(), [envelope(payload={"query_id": QUERY, "query": "Wie groß?", "attachments": []})])
    time, subject, sender, correlation, *preview = line.split()
    assert (len(time), subject, sender, correlation) == (12, "query.received", "api", "3f2a1b9c")
    assert " ".join(preview) == 'query="Wie groß?"'


def test_a_preview_leaves_out_what_is_usual_and_shows_what_is_not() -> None:
    usual = {"query_id": QUERY, "respondent_id": "A", "attempt": 1, "error": None, "status": "answered"}
    [line] = shown(human(), [envelope(payload=usual)])
    assert line.endswith('3f2a1b9c status="answered"')
    [line] = shown(human(), [envelope(payload=usual | {"respondent_id": "B", "attempt": 2, "query_id": "x"})])
    assert line.endswith('query_id="x" respondent_id="B" attempt=2 status="answered"')


def test_a_judgement_or_memory_has_a_line_that_says_what_it_says() -> None:
    for message, preview in [
        (CritiqueResult(query_id=QUERY, score=4, status="graded", judge="m"), 'score=4 status="graded" judge="m"'),
        (
            CritiqueResult(query_id=QUERY, score=None, status="unparsed", self_judged=True),
            'status="unparsed" self_judged=true',
        ),
        (
            PairwiseResult(query_id=QUERY, winner="tie", order_consistent=False, status="graded"),
            'winner="tie" order_consistent=false status="graded"',
        ),
        (UserFeedback(query_id=QUERY, rating=-1, comment="No.", rated_at=7.0), 'rating=-1 comment="No." rated_at=7.0'),
        (
            RewardEvent(query_id=QUERY, respondent_id="B", reward=0.0, rated_at=7.0),
            'respondent_id="B" reward=0.0 source="user" rated_at=7.0',
        ),
        (MemoryRequest(verb="search", query="tea", limit=3), 'verb="search" query="tea" limit=3'),
        (MemoryResult(verb="search", degraded=("words alone",)), 'verb="search" degraded=["words alone"]'),
        (MemoryIngested(engram_id="e1", query_id=QUERY), 'engram_id="e1"'),
        (
            MemoryAnnotated(engram_id="e1", query_id=QUERY, what="score", value=4.0),
            'engram_id="e1" what="score" value=4.0',
        ),
        (MemoryDeleted(engram_id="e1", query_id=QUERY), 'engram_id="e1"'),
        (UserFacts(of_user="owner"), 'of_user="owner"'),
    ]:
        [line] = shown(human(), [envelope(message.routing_key, message.encode())])
        assert line.split(maxsplit=4)[1:] == [message.routing_key, "api", "3f2a1b9c", preview]


@pytest.mark.parametrize("text", ["plain " * 40, "幅広い文字 " * 40])
def test_a_line_is_cut_at_the_width_of_the_terminal(text: str) -> None:
    [line] = shown(human(width=100), [envelope(payload={"query": text})])
    assert 98 <= cell_len(line) <= 100
    assert line.endswith("…")


def test_without_a_terminal_nothing_is_cut() -> None:
    [line] = shown(human(), [envelope(payload={"query": "x" * 5000})])
    assert len(line) > 5000


def test_control_characters_of_a_sender_never_reach_the_terminal() -> None:
    for hostile in ["\x1b[2Jgone", "a\nb", "\x9b31m", "\u202egnp.exe", "\u2028", "\x00", "\r"]:
        for view in (
            human(),
            human(show_payload=False),
            JsonView(),
            FieldView(["sender"]),
            FieldView(["payload.query"]),
        ):
            [line] = shown(view, [envelope(payload={"query": hostile}, sender=f"api{hostile}", correlation_id=hostile)])
            assert line.replace("\t", "").isprintable()


def test_a_no_break_space_is_a_space_and_an_escape_can_be_read() -> None:
    assert visible("10\xa0000 \x1b") == "10 000 \\x1b"


def test_a_payload_that_is_no_message_is_shown_as_text() -> None:
    for payload in [b"\xff\x00 no json", b"[1]", b'{"a": NaN}', b'{"a": 1, "a": 2}', b"[" * 5000, b""]:
        [line] = shown(human(), [envelope(payload=payload)])
        assert "query.received" in line
        [line] = shown(JsonView(), [envelope(payload=payload)])
        assert json.loads(line)["payload"] == payload.decode(errors="replace")


def test_a_time_that_no_clock_shows_does_not_hide_the_message() -> None:
    [line] = shown(human(), [envelope(sent_at=1e300)])
    assert line.startswith("??:??:??.??? query.received")


def test_consecutive_tokens_of_a_query_become_one_line_that_ends_with_the_next_message() -> None:
    view = human()
    assert shown(view, [token("It "), token("is "), token("late.")]) == []
    joined, response = shown(view, [envelope("response.generation")])
    assert joined.endswith('3× "It is late."')
    assert "response.generation" in response


def test_thinking_and_answer_and_two_respondents_are_not_mixed() -> None:
    view = human()
    thinking = token("hmm", subject="generation.thinking")
    lines = shown(view, [thinking, token("yes"), token("no", respondent="B")]) + list(view.rest())
    assert [line.partition("× ")[2] for line in lines] == ['"hmm"', '"yes"', '"no"']


def test_tokens_of_two_queries_that_come_in_turn_are_joined_each() -> None:
    view = human()
    assert shown(view, [token("a"), token("x", query="other"), token("b"), token("y", query="other")]) == []
    assert [line.partition("× ")[2] for line in view.rest()] == ['"ab"', '"xy"']


def test_tokens_are_shown_after_a_second_even_if_nothing_follows() -> None:
    view = human()
    shown(view, [token("slow")], now=5.0)
    assert list(view.due(5.0 + HOLD_SECONDS / 2)) == []
    [line] = view.due(5.0 + HOLD_SECONDS)
    assert line.endswith('1× "slow"')
    assert list(view.rest()) == []


def test_every_token_has_its_line_without_folding() -> None:
    assert len(shown(human(fold=False), [token("a"), token("b")])) == 2


def test_json_is_the_header_and_the_payload_on_one_line() -> None:
    message = envelope(payload={"query": "ü"}, session_id="s1")
    [line] = shown(JsonView(), [message])
    assert json.loads(line) == message.header() | {"payload": {"query": "ü"}}
    [line] = shown(JsonView(show_payload=False), [message])
    assert json.loads(line) == message.header()


def test_a_field_is_found_by_its_path_and_messages_without_it_are_skipped() -> None:
    calls = envelope(payload={"tool_calls": [{"tool": "web_search", "args": {"query": "x"}}]})
    view = FieldView(["payload.tool_calls.0.tool"])
    assert shown(view, [envelope(payload={"answer": "no"}), calls, envelope(payload=b"text")]) == ["web_search"]
    assert shown(FieldView(["payload.tool_calls.0.args"]), [calls]) == ['{"query": "x"}']
    assert shown(FieldView(["payload.tool_calls.1", "payload.tool_calls.x", "seq.x"]), [calls]) == []


def test_several_fields_stand_side_by_side() -> None:
    view = FieldView(["subject", "payload.missing", "payload.answer"])
    assert shown(view, [envelope(payload={"answer": "a\tb"})]) == ["query.received\t\ta\\tb"]
    [line] = shown(FieldView(["seq", "payload.answer"], as_json=True), [envelope(payload={"answer": "a"})])
    assert json.loads(line) == {"seq": 1, "payload.answer": "a"}


def test_a_large_field_is_fetched_from_the_blob_store(tmp_path: Path) -> None:
    blobs = BlobStore(tmp_path)
    packed = blobs.pack(json.dumps({"answer": "long " * 20_000}).encode())
    assert shown(FieldView(["payload.answer"], blobs=blobs), [envelope(payload=packed)]) == ["long " * 20_000]
    elsewhere = FieldView(["payload.answer"], blobs=BlobStore(tmp_path / "empty"))
    [line] = shown(elsewhere, [envelope(payload=packed)])
    assert "$blob" in line

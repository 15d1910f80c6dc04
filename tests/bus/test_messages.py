"""Messages: their subjects, their delivery classes, and the validation of payloads when they are read or written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from local.bus.message import (
    MAX_LENGTH,
    Delivery,
    ErrorInfo,
    Message,
    delivery_of,
    is_family,
    is_subject,
    kept_subjects,
    message_classes,
    subscription,
)
from local.bus.messages import (
    AgentTransition,
    GenerationToken,
    ParticipantStatus,
    QueryCancel,
    QueryReceived,
    ToolRequest,
)
from local.core.errors import MalformedFrame, UnsendableMessage

CONFIRMED = """query.received query.accepted query.failed query.cancel response.generation critique.result
    pairwise.result user.feedback reward.event memory.ingested"""
RECORDED = """tool.schema tool.schema.request tool.request.web_search tool.result.web_search answer.dialog
    agent.transition bus.gap bus.dead something.new"""
EPHEMERAL = """generation.thinking generation.token participant.status bus.probe.x journal.opened journal.confirmed.x
    journal.attach journal.detach journal.fenced.x journal.deliver.x journal.ack journal.working journal.read
    journal.entries journal.redact journal.redacted memory.request.facts model.lease.claim"""
TOOL_REQUEST = ToolRequest(query_id="q", call_id="q:1:0", tool="web_search", args={"query": "x"})
TEXTS = st.text(st.sampled_from('ab"\\\0\x7f\x1f/ü\u2028\uffff😀{}[]:,'), max_size=8)


def test_each_message_is_frozen_and_has_a_subject_of_its_own() -> None:
    kinds = message_classes()
    assert len({kind.subject for kind in kinds}) == len(kinds)
    for kind in kinds:
        assert kind.model_config.get("frozen") is True
        is_good = kind.family_key in kind.model_fields if is_family(kind.subject) else is_subject(kind.subject)
        assert is_good, kind


def test_the_journal_keeps_what_is_confirmed_and_recorded_and_nothing_else() -> None:
    kept = kept_subjects()
    for delivery, subjects in (
        (Delivery.CONFIRMED, CONFIRMED),
        (Delivery.RECORDED, RECORDED),
        (Delivery.EPHEMERAL, EPHEMERAL),
    ):
        for subject in subjects.split():
            assert delivery_of(subject) is delivery, subject
            is_kept = any(subject == each or (each.endswith(".") and subject.startswith(each)) for each in kept)
            assert is_kept == (delivery is not Delivery.EPHEMERAL and subject != "something.new"), subject


def test_dotted_words_are_a_subject_and_nothing_else_is() -> None:
    for text in ("query.received", "tool.result.web_search", "x", "bus.probe.0aF-9_", "tool.request.Dice"):
        assert is_subject(text)
    long = "x" * (MAX_LENGTH + 1)
    for text in ("", ".", "tool.", ".tool", "a..b", "a b", "a\0b", "a\n", "tool.ärger", "a/b", "\ud800", long):
        assert not is_subject(text)


def test_a_subscription_is_a_prefix_of_frames_that_covers_one_subject_or_a_family() -> None:
    frame = b"tool.schema.request\0{}\0{}"
    assert not frame.startswith(subscription("tool.schema"))
    assert frame.startswith(subscription("tool.schema.request"))
    assert (subscription("tool.result."), subscription("")) == (b"tool.result.", b"")
    assert is_family("tool.result.") and is_family("") and not is_family("tool.result")
    assert TOOL_REQUEST.routing_key == "tool.request.web_search"


def test_a_payload_travels_under_its_public_names_and_new_fields_are_ignored() -> None:
    change = AgentTransition(
        agent="generator", query_id="q", from_state="IDLE", action="RECEIVE_QUERY", to_state="RECEIVING"
    )
    payload = json.loads(change.encode())
    assert (payload["from"], payload["to"]) == ("IDLE", "RECEIVING")
    assert AgentTransition.decode(change.encode()) == change
    assert QueryReceived.decode(b'{"query_id":"q","query":"?","mood":"good"}') == QueryReceived(query_id="q", query="?")


@pytest.mark.parametrize(
    ("kind", "payload", "where"),
    [
        (QueryReceived, b"{}", "query_id: Field required"),
        (QueryReceived, b'{"query_id":"q","query":5}', "query: "),
        (QueryReceived, b'{"query_id":"q","query":null}', "query: "),
        (QueryReceived, b'{"query_id":"q","query":"?","attachments":[["x"]]}', "attachments.0: "),
        (GenerationToken, b'{"query_id":"q","index":1.5,"text":""}', "index: "),
        (ToolRequest, b'{"query_id":"q","call_id":"c","tool":"t","args":[]}', "args: "),
        (ParticipantStatus, b'{"name":"n","kind":"k","pid":1,"instance":"i","state":"lost"}', "state: "),
        (QueryReceived, b'{"query_id":"q","query":"?","query":"!"}', " occurs twice"),
        (QueryReceived, b"[]", "expected a JSON object"),
        (QueryReceived, b"", "not JSON"),
        (QueryReceived, b'{"query_id":"q","query":"?","history":[{"%b":"x"}],"query":1}' % (b"k" * 500_000), "twice"),
        (ParticipantStatus, b'{"name":"n","state":"ready","counters":{"%b":"x"}}' % (b"k" * 500_000), ": "),
    ],
    ids=lambda value: None if isinstance(value, bytes) else str(value),
)
def test_a_payload_that_is_wrong_is_refused_with_its_subject_and_field(
    kind: type[Message], payload: bytes, where: str
) -> None:
    with pytest.raises(MalformedFrame) as caught:
        kind.decode(payload)
    assert f"payload of {kind.subject}: " in str(caught.value)
    assert where in str(caught.value) and len(str(caught.value)) < 500


def test_a_value_that_json_cannot_hold_is_refused_at_the_sender() -> None:
    for value in ("\ud800", object(), {"deep": ["\udfff"]}):
        with pytest.raises(UnsendableMessage, match=r"tool\.request"):
            TOOL_REQUEST.model_copy(update={"args": {"x": value}}).encode()


@given(
    text=TEXTS, args=st.dictionaries(TEXTS, st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.lists(TEXTS))
)
def test_an_encoded_message_decodes_to_the_same(text: str, args: dict[str, Any]) -> None:
    message = ToolRequest(query_id=text, call_id=text, tool="t", args=args)
    assert b"\0" not in message.encode()
    assert ToolRequest.decode(message.encode()) == message


@given(st.binary(max_size=60))
def test_no_payload_raises_anything_but_malformed_frame(payload: bytes) -> None:
    with pytest.raises(MalformedFrame):
        QueryReceived.decode(payload)


def test_a_status_of_an_earlier_version_is_read_with_the_present_name_of_its_kind() -> None:
    payload = b'{"name": "api", "kind": "door", "pid": 1, "instance": "i", "state": "ready"}'
    assert ParticipantStatus.decode(payload).kind == "frontend"


def test_an_error_of_pydantic_is_told_without_its_address() -> None:
    with pytest.raises(ValidationError) as failed:
        QueryCancel.model_validate({"query_id": 1})
    told = ErrorInfo.of(failed.value)
    assert told.message.startswith("query_id: ") and "http" not in told.message

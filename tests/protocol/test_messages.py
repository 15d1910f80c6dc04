"""Every message: frozen, described, on a known subject, with the delivery class of the design's table."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from local.bus import message as subjects
from local.bus.message import Delivery, Message, message_classes
from local.bus.messages import AgentTransition, GenerationToken, ParticipantStatus, QueryReceived, ToolRequest
from local.core.errors import MalformedFrame, UnsendableMessage

CONFIRMED, RECORDED, EPHEMERAL = Delivery.CONFIRMED, Delivery.RECORDED, Delivery.EPHEMERAL
TABLE: dict[str, tuple[Delivery, set[str]]] = {
    "query.received": (CONFIRMED, {"query", "query_id", "attachments"}),
    "query.accepted": (CONFIRMED, {"query_id", "respondent_id", "attempt"}),
    "query.failed": (CONFIRMED, {"query_id", "respondent_id", "attempt", "error"}),
    "query.cancel": (CONFIRMED, {"query_id"}),
    "generation.thinking": (EPHEMERAL, {"query_id", "respondent_id", "attempt", "index", "text"}),
    "generation.token": (EPHEMERAL, {"query_id", "respondent_id", "attempt", "index", "text"}),
    "tool.schema": (RECORDED, {"tool", "parameters", "effect", "timeout_seconds"}),
    "tool.schema.request": (RECORDED, set()),
    "tool.request.": (RECORDED, {"query_id", "respondent_id", "call_id", "tool", "args"}),
    "tool.result.": (RECORDED, {"query_id", "call_id", "tool", "result", "error", "sources", "duration_ms"}),
    "response.generation": (
        CONFIRMED,
        {
            "query_id",
            "respondent_id",
            "status",
            "query",
            "answer",
            "thinking",
            "tool_calls",
            "model",
            "usage",
            "degraded",
        },
    ),
    "answer.dialog": (RECORDED, {"query_id", "query", "answer"}),
    "critique.result": (CONFIRMED, {"query_id", "respondent_id", "score", "status", "feedback", "rubric", "judge"}),
    "pairwise.result": (CONFIRMED, {"query_id", "winner", "order_consistent"}),
    "user.feedback": (CONFIRMED, {"query_id", "rating", "comment"}),
    "reward.event": (CONFIRMED, {"query_id", "respondent_id", "reward", "source"}),
    "memory.ingested": (CONFIRMED, {"engram_id"}),
    "memory.request.": (EPHEMERAL, {"verb"}),
    "agent.transition": (RECORDED, {"agent", "query_id", "from", "action", "to"}),
    "participant.status": (EPHEMERAL, {"pid", "instance", "state", "inflight", "counters", "last_seq"}),
    "bus.gap": (RECORDED, {"missed"}),
    "bus.dead": (RECORDED, {"error"}),
    "journal.confirmed.": (EPHEMERAL, {"ids", "refused"}),
    "journal.deliver.": (EPHEMERAL, {"number", "attempt", "frame"}),
    "journal.ack": (EPHEMERAL, {"numbers"}),
    "journal.working": (EPHEMERAL, {"attempts"}),
    "model.lease.claim": (EPHEMERAL, {"server", "turns", "leases"}),
    "model.lease.state": (EPHEMERAL, {"server", "slots", "turns", "granted", "revoked", "waiting"}),
    "journal.read": (EPHEMERAL, {"after", "limit"}),
}


MESSAGES = sorted(message_classes(), key=lambda kind: kind.subject)
BY_SUBJECT = {kind.subject: kind for kind in MESSAGES}
TOOL_REQUEST = ToolRequest(query_id="q", call_id="q:1:0", tool="web_search", args={"query": "x"})


@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.__name__)
def test_a_message_is_a_frozen_class_that_says_who_sends_it_when_and_where(kind: type[Message]) -> None:
    assert kind.model_config.get("frozen") is True
    assert kind.__doc__ and len(kind.__doc__) > 20
    assert getattr(subjects, kind.subject.rstrip(".").replace(".", "_").upper()) == kind.subject
    assert isinstance(kind.delivery, Delivery)
    if kind.subject.endswith("."):
        assert kind.family_key in kind.model_fields
    else:
        assert kind.family_key == "" and subjects.is_subject(kind.subject)


def test_each_subject_has_one_message_class() -> None:
    assert len(BY_SUBJECT) == len(MESSAGES)
    with pytest.raises(AttributeError, match="no message has the subject NOTHING_SAID"):
        _ = subjects.NOTHING_SAID


@pytest.mark.parametrize("subject", TABLE)
def test_delivery_and_fields_are_those_of_the_design(subject: str) -> None:
    delivery, fields = TABLE[subject]
    kind = BY_SUBJECT[subject]
    assert kind.delivery is delivery
    assert fields <= {field.alias or name for name, field in kind.model_fields.items()}


def test_a_message_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        TOOL_REQUEST.tool = "other"  # type: ignore[misc]


def test_the_routing_key_of_a_family_ends_with_the_name() -> None:
    assert TOOL_REQUEST.routing_key == "tool.request.web_search"
    assert QueryReceived(query_id="q", query="?").routing_key == "query.received"


def test_a_transition_travels_as_from_and_to() -> None:
    change = AgentTransition(
        agent="generator", query_id="q", from_state="IDLE", action="RECEIVE_QUERY", to_state="RECEIVING"
    )
    payload = json.loads(change.encode())
    assert (payload["from"], payload["to"]) == ("IDLE", "RECEIVING")
    assert AgentTransition.decode(change.encode()) == change


def test_fields_of_a_newer_sender_are_ignored() -> None:
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
        (QueryReceived, b'{"query_id":"q","query":"?","query":"!"}', "stands twice"),
        (QueryReceived, b"[]", "expected a JSON object"),
        (QueryReceived, b"", "not JSON"),
    ],
)
def test_a_payload_that_is_wrong_is_refused_with_its_subject_and_field(
    kind: type[Message], payload: bytes, where: str
) -> None:
    with pytest.raises(MalformedFrame) as caught:
        kind.decode(payload)
    assert f"payload of {kind.subject}: " in str(caught.value)
    assert where in str(caught.value)


def test_a_hostile_field_name_does_not_make_a_megabyte_of_message() -> None:
    counters = {"k" * 500_000: "x"}
    payload = {"name": "n", "kind": "k", "pid": 1, "instance": "i", "state": "ready", "counters": counters}
    with pytest.raises(MalformedFrame) as caught:
        ParticipantStatus.decode(json.dumps(payload).encode())
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("value", ["\ud800", object(), {"deep": ["\udfff"]}])
def test_what_json_cannot_say_is_refused_at_the_sender_by_name(value: Any) -> None:
    with pytest.raises(UnsendableMessage, match=r"tool\.request"):
        TOOL_REQUEST.model_copy(update={"args": {"x": value}}).encode()


texts = st.text(st.characters(codec="utf-8"))
arguments = st.dictionaries(texts, st.none() | st.booleans() | st.integers(-(2**70), 2**70) | texts | st.lists(texts))


@given(query_id=texts, call_id=texts, args=arguments)
def test_what_is_encoded_decodes_to_the_same(query_id: str, call_id: str, args: dict[str, Any]) -> None:
    message = ToolRequest(query_id=query_id, call_id=call_id, tool="t", args=args)
    assert b"\0" not in message.encode()
    assert ToolRequest.decode(message.encode()) == message


@given(st.binary(max_size=60))
def test_no_payload_raises_anything_but_malformed_frame(payload: bytes) -> None:
    with pytest.raises(MalformedFrame):
        QueryReceived.decode(payload)

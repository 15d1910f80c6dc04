"""`tap graph`, `info`, `bw`, `delay` and `pub`: what they compute, and what they refuse."""

from __future__ import annotations

import json

import pytest

from local.bus.bus import Bus
from local.bus.by_hand import BadPublication, checked, envelope_of
from local.bus.envelope import Envelope
from local.bus.messages import ParticipantStatus
from local.bus.security import Declaration
from local.bus.zeromq import MemoryHub
from local.cli.tap_stats import Bandwidth, BusGraph, Delays, SubjectInfo

SAYS = {"api": {"query.received", "participant.status"}, "generator": {"tool.request."}}
HEARS = {
    "generator": {"query.received": "generator"},
    "dice": {"tool.request.dice": ""},
    "journal": {"": "", "participant.status": ""},
}


def declared(name: str) -> Declaration | None:
    return Declaration(frozenset(SAYS[name])) if name in SAYS else None


def drawn(*names: str) -> BusGraph:
    graph = BusGraph(declared)
    for name in names or ("api", "generator", "dice", "journal"):
        graph.receive(beat(name))
    return graph


def beat(name: str, state: str = "ready") -> Envelope:
    status = ParticipantStatus(
        name=name, kind="agent", pid=1, instance="i", state=state, subscriptions=HEARS.get(name, {})
    )  # type: ignore[arg-type]
    return Envelope("participant.status", "id", name, "i", 1, "c", status.encode())


def test_an_arrow_has_the_narrower_of_what_is_said_and_what_is_heard() -> None:
    arrows = {tuple(arrow) for arrow in drawn("api", "generator", "dice").arrows()}
    assert arrows == {
        ("query.received", "api", "generator", "generator"),
        ("tool.request.dice", "generator", "dice", ""),
    }


def test_for_people_it_is_a_line_for_each_subject_and_upkeep_is_left_out() -> None:
    lines = [line.split(maxsplit=1) for line in drawn().without_upkeep().as_text().splitlines()]
    assert lines == [["query.received", "api → generator*"], ["tool.request.dice", "generator → dice"]]
    assert "participant.status" in drawn().as_text()


def test_graphviz_gets_a_graph_in_which_no_name_can_end_its_quotes() -> None:
    SAYS['a"b'] = {"x"}
    HEARS["hears x"] = {"x": ""}
    dot = drawn('a"b', "hears x").as_dot()
    assert dot.startswith("digraph bus {\n") and dot.endswith("\n}")
    assert '  "a\\"b" -> "x ";' in dot
    assert '  "x " -> "hears x";' in dot


def test_who_stops_is_not_in_it_and_what_is_no_beat_is_passed_over() -> None:
    graph = drawn("api", "generator")
    graph.receive(beat("api", "stopping"))
    graph.receive(Envelope("participant.status", "id", "x", "i", 1, "c", b"{}"))
    assert list(graph.members) == ["generator"]
    assert BusGraph(declared).as_text().startswith("no participant was heard")
    assert json.loads(graph.as_json())["participants"][0]["hears"] == {"query.received": "generator"}


def test_info_tells_what_a_subject_is_for_and_who_says_and_hears_it() -> None:
    found = json.loads(SubjectInfo("query.received", drawn()).text(as_json=True))
    assert found["senders"] == ["api"]
    assert found["receivers"] == [{"name": "generator", "consumer": "generator"}, {"name": "journal", "consumer": None}]
    assert found["messages"][0]["delivery"] == "confirmed"
    text = SubjectInfo("tool.request.", drawn()).text(as_json=False)
    assert "sent by: generator" in text and "received by: dice" in text
    assert "not a message of LoCAL2" in SubjectInfo("my.own", drawn()).text(as_json=False)


def test_bandwidth_is_counted_until_now() -> None:
    bandwidth = Bandwidth(window=2)
    assert bandwidth.report(0.0) == "no new messages"
    for now, size in ((0.0, 9_000), (1.0, 500), (2.0, 1_500)):
        bandwidth.add(now, size)
    assert bandwidth.report(3.0) == "average: 1 kB/s  mean: 1 kB min: 500 B max: 2 kB window: 2"
    assert bandwidth.report(4.0) == "no new messages"


def test_delays_are_told_in_milliseconds() -> None:
    delays = Delays(window=2)
    for seconds in (9.0, 0.001, 0.003):
        delays.add(seconds)
    assert delays.report() == "average delay: 2.00 ms  min: 1.00 ms max: 3.00 ms std dev: 1.00 ms window: 2"
    assert delays.report() == "no new messages"


@pytest.mark.parametrize(
    ("subject", "text", "why"),
    [
        ("query.", "{}", "is not a complete subject"),
        ("query.cancel", "[]", "query.cancel: payload"),
        ("query.cancel", '{"query": "q"}', "query_id: Field required"),
    ],
)
def test_what_nobody_could_read_is_not_said(subject: str, text: str, why: str) -> None:
    with pytest.raises(BadPublication, match=why):
        checked(subject, text)


def test_what_is_said_by_hand_is_of_its_query_or_of_a_trace_of_its_own() -> None:
    content = checked("query.cancel", '{"query_id": "q7"}')
    bus = Bus("tap_pub", MemoryHub().transport())
    assert envelope_of(bus, "query.cancel", content, "q7", "s").correlation_id == "q7"
    own = envelope_of(bus, "my.own", checked("my.own", '{"x": 1}'), None, None)
    assert (own.correlation_id, own.sender, own.payload) == (own.id, "tap_pub", b'{"x": 1}')

"""Whatever dies or is sent, a conversation goes on."""

from __future__ import annotations

import random
import socket

import psutil
import zmq

BAD_BODIES = [
    b"",
    b"\0",
    b"{",
    b"{}\0{}",
    b"[]\0[]",
    b"null\0null",
    b'{"v":99}\0{}',
    b'{"v":1,"v":1}\0{}',
    b"\xff\xfe\xfd\0\xff",
    b"NaN\0NaN",
    b'{"v":1,"id":"\\ud800"}\0{}',
    b'{"v":1e999}\0{}',
    b"[" * 5000 + b"\0" + b"]" * 5000,
    b"\0" * 300,
]
SUBJECTS = [b"participant.status", b"query.received", b"tool.request.web_search", b"tool.schema"]
FRAMES = 1000


def test_health_is_ok_with_every_participant(live) -> None:
    live.wait_until(lambda: live.health()["status"] == "ok")
    participants = {known["name"]: known["state"] for known in live.health()["participants"]}
    everybody = {"proxy", "journal", "stand_in", "generator", "web_search", "web_fetch", "api"}
    assert everybody <= participants.keys()
    assert {participants[name] for name in everybody} == {"ready"}


def test_a_killed_tool_is_started_again_and_used_by_the_next_query(live) -> None:
    first = live.ask("Search the web for AI news", session_id="killed-tool")
    before = live.participant("web_search")
    live.kill("web_search")
    live.wait_until(lambda: _is_again_ready(live.participant("web_search"), before))
    second = live.ask("Search the web for the benchmark", session_id="killed-tool")
    for answer in (first, second):
        assert [(call["tool"], call["error"]) for call in answer["tool_calls"]] == [("web_search", None)]


def test_after_the_proxy_was_killed_the_next_query_is_answered(live) -> None:
    live.kill("proxy")
    assert "Paris" in live.ask("What is the capital of France?")["answer"]


def test_a_turn_goes_on_in_the_next_generator_and_the_waiting_client_gets_its_answer(live) -> None:
    body = {"query": "What is the capital of Italy?", "query_id": "goes-on"}
    live.model_fails(body["query"], "first_token_delay", seconds=300, times=99)
    with live.stream("POST", "/query", json=body) as events:
        kind, _ = next(events)
        assert kind == "accepted"  # before that the turn may be computed ahead: no attempt that anybody hears of
        assert next(kind for kind, _ in events if kind == "state")  # it has begun
        live.wait_until(lambda: live.model_is_asked(body["query"]))
        live.stand_in("DELETE", "fault")
        live.kill("generator")
        seen = list(events)
    [response] = [data for kind, data in seen if kind == "response"]
    assert "Rome" in response["answer"]
    assert {data["attempt"] for kind, data in seen if kind == "token"} == {2}
    live.wait_until(lambda: live.on_record("response.generation", "goes-on") == 1)


def test_an_answer_whose_model_server_died_is_begun_again_and_said_once(live) -> None:
    body = {"query": "What is the capital of Germany?", "query_id": "begun-again"}
    live.model_fails(body["query"], "disconnect", after=6)
    with live.stream("POST", "/query", json=body) as events:
        seen = list(events)
    kinds = [kind for kind, _ in seen]
    withdrawn = max(place for place, kind in enumerate(kinds) if kind == "snapshot")
    assert kinds[withdrawn + 1] == "waiting"
    assert seen[withdrawn][1]["answer"] == seen[withdrawn][1]["thinking"] == ""
    [response] = [data for kind, data in seen if kind == "response"]
    assert "".join(data["text"] for kind, data in seen[withdrawn:] if kind == "token") == response["answer"]
    assert response["answer"].count("Berlin") == 1
    assert "stopped in the middle of an answer, which was begun again" in response["degraded"][0]


def test_after_the_api_was_killed_the_same_query_id_gets_the_same_answer(live) -> None:
    first = live.ask("What is the capital of Japan?", query_id="asked-twice", session_id="twice")
    live.kill("api")
    second = live.ask("What is the capital of Japan?", query_id="asked-twice", session_id="twice")
    assert "Tokyo" in first["answer"]
    assert second["answer"] == first["answer"]
    assert len(live.http.get("/sessions/twice").json()["turns"]) == 1


def test_malformed_frames_kill_nobody_and_leave_no_traceback(live) -> None:
    live.wait_until(lambda: live.health()["status"] == "ok")
    before = {known["name"]: known for known in live.health()["participants"]}
    own = ("generator", "web_search", "web_fetch", "api")
    _send_garbage(live.system.facts.publish_to)
    enough = FRAMES // len(SUBJECTS)
    live.wait_until(lambda: all(_rejected(live.participant(name)) >= _rejected(before[name]) + enough for name in own))
    assert "Paris" in live.ask("What is the capital of France?")["answer"]
    after = {known["name"]: known["pid"] for known in live.health()["participants"]}
    assert {name: after.get(name) for name in before} == {name: known["pid"] for name, known in before.items()}
    assert all(psutil.pid_exists(pid) for pid in after.values())
    assert not [line for line in live.system.log if "Traceback" in line]


def _is_again_ready(now: dict, before: dict) -> bool:
    return now["state"] == "ready" and now["restarts"] == before["restarts"] + 1 and now["pid"] != before["pid"]


def _rejected(participant: dict) -> int:
    return participant["counters"].get("malformed", 0)


def _send_garbage(address: str) -> None:
    """`FRAMES` frames through the bus, a quarter of them to everybody; and bytes that are no frames at all."""
    chance = random.Random(7)
    with socket.socket(socket.AF_UNIX) as raw:
        raw.connect(address.removeprefix("ipc://"))
        raw.sendall(chance.randbytes(4096))
    with zmq.Context() as context, context.socket(zmq.XPUB) as publisher:
        publisher.linger = 5000
        publisher.connect(address)
        publisher.recv()  # the proxy listens
        for number in range(FRAMES):
            body = BAD_BODIES[number // len(SUBJECTS) % len(BAD_BODIES)] + chance.randbytes(number % 40)
            publisher.send(SUBJECTS[number % len(SUBJECTS)] + b"\0" + body)

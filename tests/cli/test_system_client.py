"""A program's hold on a running system over HTTP."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from local.cli import client as module
from local.cli.client import ANSWER_SECONDS, SystemClient
from local.cli.command_table import run_command
from local.core.errors import NoAnswer

BUSY = (429, {"retry-after": "7"}, {"error": {"kind": "too_many_queries", "message": "ask again in 7 s"}})
REFUSED = (429, {"retry-after": "5"}, {"error": {"kind": "busy", "message": "too many queries of this session"}})
CLOSING = (503, {"retry-after": "5"}, {"error": {"kind": "stopping", "message": "this server is stopping: ask again"}})
ANSWERED: tuple[int, dict[str, str], dict[str, Any]] = (200, {}, {"answer": "Yes."})


@contextmanager
def system(
    *says: tuple[int, dict[str, str], dict[str, Any]], answer_seconds: float = ANSWER_SECONDS
) -> Iterator[SystemClient]:
    """A client of a system that gives these answers, one after the other."""
    answers = iter(says)

    class Frontend(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.do_POST()

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"] or 0))
            status, headers, body = next(answers)
            data = json.dumps(body).encode()
            self.send_response(status)
            for name, value in {**headers, "content-length": str(len(data))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Frontend) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        with SystemClient(f"http://127.0.0.1:{server.server_port}", answer_seconds=answer_seconds) as client:
            yield client
        server.shutdown()


def test_what_may_be_asked_twice_is_asked_of_the_next_frontend_when_one_closes() -> None:
    with system(CLOSING, CLOSING, ANSWERED, CLOSING, ANSWERED) as client:
        assert client.request("GET", "/sessions") == {"answer": "Yes."}
        assert client.insist("POST", "/participants/api/restart", {}) == {"answer": "Yes."}


def test_what_may_be_done_once_only_is_not_asked_of_the_next_frontend() -> None:
    with system(CLOSING, ANSWERED) as client, pytest.raises(NoAnswer, match="this server is stopping") as raised:
        client.request("POST", "/feedback", {})
    assert (raised.value.kind, raised.value.retry_after) == ("stopping", 5.0)


def test_a_system_without_a_frontend_is_not_asked_for_ever() -> None:
    with system(*[CLOSING] * 4, ANSWERED) as client, pytest.raises(NoAnswer, match="this server is stopping"):
        client.request("GET", "/sessions")


def test_an_api_that_others_restart_is_restarted_once_and_told_as_the_next_frontend_says(
    capsys: pytest.CaptureFixture[str],
) -> None:
    row = {"name": "api", "state": "ready", "pid": 7, "detail": ""}
    with system(CLOSING, CLOSING, (200, {}, {"participants": [row]}), REFUSED) as client:
        assert run_command(["restart", "api", "--api", client._url]) == 0
    assert capsys.readouterr().out == "api is ready, process 7\n"


def test_who_refuses_a_body_before_its_end_is_heard() -> None:
    body = b'{"error": {"kind": "too_large", "message": "whoa"}}'

    def refuse() -> None:
        with listener.accept()[0] as connection:
            connection.recv(1000)
            connection.sendall(b"HTTP/1.1 413 \r\ncontent-length: 51\r\n\r\n" + body)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=refuse, daemon=True).start()
        client = SystemClient(f"http://127.0.0.1:{listener.getsockname()[1]}")
        with pytest.raises(NoAnswer, match=r"whoa \(HTTP 413, too_large\)"):
            client.attach("large.txt", b"x" * 50_000_000)


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    pauses: list[float] = []
    monkeypatch.setattr(module.time, "sleep", pauses.append)
    return pauses


def test_a_system_with_too_much_to_do_is_asked_again_when_it_says(slept: list[float]) -> None:
    with system(BUSY, BUSY, ANSWERED) as client:
        assert client.ask("really?", "s") == {"answer": "Yes."}
    assert slept == [7.0, 7.0]


def test_another_refusal_is_told_at_once(slept: list[float]) -> None:
    with system(REFUSED) as client, pytest.raises(NoAnswer, match="too many queries of this session"):
        client.ask("really?", "s")
    assert slept == []


def test_a_system_that_never_finds_the_time_is_given_up(slept: list[float]) -> None:
    with system(BUSY, answer_seconds=6.0) as client, pytest.raises(NoAnswer, match="ask again in 7 s"):
        client.ask("really?", "s")
    assert slept == []


def test_the_sessions_are_the_latest_first_also_where_one_is_pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = [{"session_id": name, "updated_at": at} for name, at in (("pinned", 1.0), ("new", 3.0), ("old", 2.0))]
    monkeypatch.setattr(SystemClient, "request", lambda *_: {"sessions": listed})
    assert [each["session_id"] for each in SystemClient("http://127.0.0.1:1").sessions()] == ["new", "old", "pinned"]

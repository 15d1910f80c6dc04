"""Which model servers lose a conversation's prefix to a call in between."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from local.models.leases import loses_prefix
from local.models.settings import Endpoint, ModelsConfig, Provider, Routing

NOWHERE = "http://127.0.0.1:1/v1"


def routing(endpoint: Endpoint, args: tuple[str, ...] | None = None) -> Routing:
    own = {} if args is None else {"server": Provider(kind="llama_server", args=args)}
    return Routing(config=ModelsConfig(providers=own), endpoints={"server": endpoint}, default="server")


@contextmanager
def props(body: bytes) -> Iterator[str]:
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert self.path == "/props"
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Answer)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    ("args", "loses"),
    [
        (("--parallel", "1"), True),
        (("--parallel", "1", "--cache-ram", "0"), True),
        (("--parallel", "1", "--cache-ram", "1024"), False),
        (("--parallel", "1", "--cache-ram=-1"), False),
        (("-np", "2"), False),
        (("-cram", "512"), False),
        (("--cache-ram", "512", "--cache-ram", "0", "-np", "1"), True),
    ],
)
async def test_of_a_server_that_we_start_its_settings_decide(args: tuple[str, ...], loses: bool) -> None:
    assert await loses_prefix(routing(Endpoint(kind="openai", url=NOWHERE), args), "server") is loses


@pytest.mark.parametrize(
    ("body", "loses"),
    [
        (json.dumps({"total_slots": 1}).encode(), True),
        (json.dumps({"total_slots": 4}).encode(), False),
        (b"{}", True),
        (b"[1]", True),
        (b"no JSON", True),
    ],
)
async def test_another_server_at_home_is_asked_for_its_slots(body: bytes, loses: bool) -> None:
    with props(body) as url:
        assert await loses_prefix(routing(Endpoint(kind="openai", url=url)), "server") is loses


async def test_one_that_does_not_answer_is_not_known() -> None:
    assert await loses_prefix(routing(Endpoint(kind="openai", url=NOWHERE)), "server") is None


async def test_ollama_may_lose_it_and_servers_on_the_internet_and_the_stand_in_do_not_matter() -> None:
    ollama, cloud = Endpoint(kind="ollama", url="http://127.0.0.1:1"), "https://api.example.com/v1"
    assert await loses_prefix(routing(ollama), "server") is True
    assert await loses_prefix(routing(Endpoint(kind="openai", url=cloud, allow_cloud=True)), "server") is False
    assert await loses_prefix(Routing.to_one("stand_in", ollama), "stand_in") is False

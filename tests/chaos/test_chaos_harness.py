"""The parts of the chaos suite that need no system: clients, seeds, figures, the matrix."""

from __future__ import annotations

from itertools import islice

import httpx
import pytest
from chaos_harness import client as client_module
from chaos_harness.cells import Treatment, failpoints, matrix
from chaos_harness.client import Client
from chaos_harness.driver import Blow, How, blows
from chaos_harness.figures import longest_gaps, percentiles
from chaos_harness.history import Asked, Form, Outcome, Question, Read
from chaos_harness.system import VICTIMS

from local.core.failpoints import NAMES

QUESTION = Question("q", "s", "My badge number is q.", "q")
ANSWER = {"status": "answered", "answer": "It is q."}
UNAVAILABLE = httpx.Response(503, json={"error": {"kind": "unavailable", "message": "nobody there"}})
STOPPING = (
    "id: a-1\nevent: token\ndata: {}\n\n"
    'id: a-2\nevent: error\ndata: {"error": {"kind": "stopping", "message": "-"}}\n\n'
)
ENDED = 'id: b-1\nevent: response\ndata: {"status": "answered", "answer": "It is q."}\n\n'


@pytest.fixture
def ask(monkeypatch):
    """Ask in a form while a server says these things one after the other; gives the memory of it and the requests."""
    monkeypatch.setattr(client_module, "RETRY_SECONDS", 0.0)
    monkeypatch.setattr(client_module, "POLL_SECONDS", 0.0)

    async def ask(form: Form, *says: httpx.Response | Exception, patience: float = 20.0):
        said, requests = iter(says), []

        def answer(request: httpx.Request) -> httpx.Response:
            requests.append(request)
            what = next(said, httpx.ConnectError("gone"))
            if isinstance(what, Exception):
                raise what
            return what

        async with httpx.AsyncClient(transport=httpx.MockTransport(answer), base_url="http://system") as http:
            return await Client(http, patience).ask(QUESTION, form), requests

    return ask


async def test_a_client_asks_again_after_a_broken_connection_and_a_refusal_for_now(ask) -> None:
    asked, requests = await ask(Form.WHOLE, httpx.ReadError("broken"), UNAVAILABLE, httpx.Response(200, json=ANSWER))
    assert asked.outcome == Outcome("answered", "It is q.")
    assert len({request.content for request in requests}) == 1
    assert len(requests) == 3


async def test_a_client_that_polls_does_so_until_the_end_and_notes_when_it_is_forgotten(ask) -> None:
    accepted = httpx.Response(202, json={})
    still = httpx.Response(200, json={"status": "open"})
    asked, requests = await ask(
        Form.POLL, UNAVAILABLE, accepted, still, httpx.Response(404), accepted, httpx.Response(200, json=ANSWER)
    )
    assert asked.outcome == Outcome("answered", "It is q.")
    assert len(asked.forgotten_at) == 1
    assert [request.method for request in requests] == ["POST", "POST", "GET", "GET", "POST", "GET"]


async def test_a_client_that_streams_comes_back_with_the_id_of_the_last_event(ask) -> None:
    asked, requests = await ask(Form.STREAM, httpx.Response(200, text=STOPPING), httpx.Response(200, text=ENDED))
    assert asked.outcome == Outcome("answered", "It is q.")
    assert [request.headers.get("last-event-id") for request in requests] == [None, "a-2"]


async def test_a_fault_of_the_frontend_is_no_outcome(ask) -> None:
    fault = httpx.Response(500, json={"error": {"kind": "store_failed", "message": "the disk"}})
    asked, _ = await ask(Form.WHOLE, fault, httpx.Response(200, json=ANSWER))
    assert asked.outcome == Outcome("answered", "It is q.")


async def test_a_query_that_is_refused_because_there_are_too_many_is_asked_again(ask) -> None:
    refused = httpx.Response(429, json={"error": {"kind": "too_many_queries", "message": "ask again in 5 s"}})
    asked, _ = await ask(Form.WHOLE, refused, httpx.Response(200, json=ANSWER))
    assert asked.outcome == Outcome("answered", "It is q.")


async def test_a_failed_query_is_an_outcome(ask) -> None:
    refused = httpx.Response(502, json={"error": {"kind": "gave_up", "message": "it died"}})
    asked, _ = await ask(Form.WHOLE, refused)
    assert asked.outcome == Outcome("failed", "gave_up")


async def test_a_long_conversation_is_read_page_by_page() -> None:
    pages = {None: (["three"], "q3"), "q3": (["one", "two"], None)}

    def answer(request: httpx.Request) -> httpx.Response:
        texts, before = pages[request.url.params.get("before")]
        return httpx.Response(200, json={"turns": [{"query": text} for text in texts], "before": before})

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer), base_url="http://system") as http:
        assert await Client(http, 20.0).questions_of("s") == ["one", "two", "three"]


async def test_a_client_gives_up_in_the_end(ask) -> None:
    asked, _ = await ask(Form.WHOLE, patience=0.05)
    assert asked.outcome is None
    assert asked.accepted_at is None


def test_a_seed_hits_the_same_processes_again_and_nobody_three_times_in_a_row() -> None:
    once, again = (list(islice(blows(7, VICTIMS), 500)) for _ in range(2))
    assert once == again
    assert once != list(islice(blows(8, VICTIMS), 500))
    hit = [victim for victim, _, _ in once]
    assert set(hit) == set(VICTIMS)
    assert not any(len({*hit[place : place + 3]}) == 1 for place in range(len(hit) - 2))


def test_the_matrix_covers_every_failpoint_in_every_way() -> None:
    cells = matrix()
    assert len(cells) == len(set(cells))
    for treatment in set(Treatment) - {Treatment.REPLACE}:
        assert {cell.failpoint for cell in cells if cell.treatment is treatment} == failpoints()
    assert {name.partition(".")[0] for name in NAMES - failpoints()} == {"cron", "files", "heartbeat", "swarm"}
    replaced = {cell.process for cell in cells if cell.treatment is Treatment.REPLACE}
    assert replaced == {"generator", "stamp", "witness", "critic", "reward", "generator_b"}


def test_a_gap_is_due_to_the_last_blow_or_to_a_freeze() -> None:
    history = [_ended(at) for at in (0.0, 0.5, 2.0, 2.1, 4.5, 4.6)]
    kill, freeze, later = Blow(0.6, "api", How.KILL), Blow(2.2, "proxy", How.FREEZE), Blow(2.3, "journal", How.KILL)
    gaps = longest_gaps(history, [kill, freeze, later])
    assert gaps == {
        (How.KILL, "api"): pytest.approx(1.5),
        (How.FREEZE, "proxy"): pytest.approx(2.4),
        (How.KILL, "journal"): 0.0,
    }


def test_a_time_in_which_nobody_waits_is_no_gap() -> None:
    history = [_ended(1.0), _ended(5.0, asked_at=4.5), _ended(5.1, asked_at=4.8)]
    assert longest_gaps(history, [Blow(2.0, "api", How.KILL), Blow(4.9, "api", How.KILL)]) == {(How.KILL, "api"): 0.5}


def test_percentiles_are_of_those_that_ended() -> None:
    history = [_ended(float(at)) for at in range(101)] + [Asked(QUESTION, Form.WHOLE, 0.0)]
    assert percentiles(history) == (50.0, 99.0)


def _ended(at: float, asked_at: float = 0.0) -> Asked:
    return Asked(QUESTION, Form.WHOLE, asked_at, asked_at, [Read(Form.WHOLE, Outcome("answered", ""), at)])

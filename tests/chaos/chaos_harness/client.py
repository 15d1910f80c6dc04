"""A client that does what good clients do: it asks again with the same query_id until it knows how the query ended."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

import httpx

from chaos_harness.history import Asked, Form, Outcome, Question, Read

Json = dict[str, Any]
T = TypeVar("T")

ACCEPTED, NOT_FOUND, FAILED_QUERY = 202, 404, 502
RETRY_SECONDS = 0.05
POLL_SECONDS = 0.03
PAGE = 200  # turns of a session, at most
# What a frontend says when it cannot know the outcome: the query goes on, or was never accepted.
NOT_AN_OUTCOME = frozenset(
    {
        "unavailable", "stopping", "timeout", "publish_timeout", "bus_not_ready", "bus_closed", "not_confirmed", "busy",
        "too_many_queries",
    }
)  # fmt: skip


class Again(Exception):
    """This try came to nothing; another may."""


class Client:
    """Asks over HTTP; `patience` is how many seconds it asks for one outcome before it gives up."""

    def __init__(self, http: httpx.AsyncClient, patience: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.patience = patience
        self._http, self._clock = http, clock

    async def ask(self, question: Question, form: Form) -> Asked:
        """Ask until there is an outcome or patience ends."""
        asked = Asked(question, form, self._clock())
        await self._read_in(form, asked)
        return asked

    async def read_again(self, asked: Asked) -> None:
        """Read the outcome in every form once more."""
        for form in Form:
            await self._read_in(form, asked)

    async def questions_of(self, session_id: str) -> list[str]:
        """The questions of a conversation as the system shows it, none if it knows of none. Raises `TimeoutError`."""

        async def show() -> list[str]:
            questions: list[str] = []
            page: dict[str, str | int] = {"limit": PAGE}
            while True:
                response = await self._http.get(f"/sessions/{session_id}/turns", params=page)
                if response.status_code == NOT_FOUND:
                    return []
                _require(response, 200)
                told = response.json()
                questions[:0] = [turn["query"] for turn in told["turns"]]
                if not told["before"]:
                    return questions
                page["before"] = told["before"]

        async with asyncio.timeout(self.patience):
            return await self._insist(show)

    async def rate(self, query_id: str, rating: int | None) -> bool:
        """Rate an answer until that is on record; says whether it is before patience ends."""

        async def post() -> None:
            _require(await self._http.post("/feedback", json={"query_id": query_id, "rating": rating}), ACCEPTED)

        try:
            async with asyncio.timeout(self.patience):
                await self._insist(post)
        except TimeoutError:
            return False
        return True

    async def participant(self, name: str) -> Json:
        """A participant as the system shows it. Raises `TimeoutError`, also where there is none."""

        async def show() -> Json:
            response = await self._http.get("/participants")
            _require(response, 200)
            listed: list[Json] = response.json()["participants"]
            return next(each for each in listed if each["name"] == name)

        async with asyncio.timeout(self.patience):
            return await self._insist(show)

    async def agents(self, query_id: str) -> list[str]:
        """The states of the agents of a query, as the system shows them. Raises `TimeoutError`."""

        async def show() -> list[str]:
            response = await self._http.get("/agents", params={"query_id": query_id})
            _require(response, 200)
            return [str(each["state"]) for each in response.json()["agents"]]

        async with asyncio.timeout(self.patience):
            return await self._insist(show)

    async def _read_in(self, form: Form, asked: Asked) -> None:
        tries = {Form.WHOLE: self._whole, Form.POLL: self._poll, Form.STREAM: _Stream(self._http, self._clock).follow}
        try:
            async with asyncio.timeout(self.patience):
                outcome = await self._insist(lambda: tries[form](asked))
        except TimeoutError:
            return
        asked.reads.append(Read(form, outcome, self._clock()))

    async def _insist(self, attempt: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                return await attempt()
            except (Again, httpx.TransportError):
                await asyncio.sleep(RETRY_SECONDS)

    async def _whole(self, asked: Asked) -> Outcome:
        response = await self._http.post("/query", json=_body(asked.question))
        outcome = _outcome(response)
        self._accepted(asked)
        return outcome

    async def _poll(self, asked: Asked) -> Outcome:
        _require(await self._http.post("/query", json={**_body(asked.question), "wait": False}), ACCEPTED)
        self._accepted(asked)
        while True:
            response = await self._http.get(f"/query/{asked.question.query_id}")
            if response.status_code == NOT_FOUND:
                asked.forgotten_at.append(self._clock())
                raise Again
            if response.json().get("status") != "open":
                return _outcome(response)
            await asyncio.sleep(POLL_SECONDS)

    def _accepted(self, asked: Asked) -> None:
        if asked.accepted_at is None:
            asked.accepted_at = self._clock()


class _Stream:
    """One client's server-sent events, over as many connections as it takes."""

    def __init__(self, http: httpx.AsyncClient, clock: Callable[[], float]) -> None:
        self._http, self._clock = http, clock
        self._last_event_id = ""

    async def follow(self, asked: Asked) -> Outcome:
        """Read on to the outcome. Raises `Again` for a stream that breaks off before it."""
        headers = {"accept": "text/event-stream"}
        if self._last_event_id:
            headers["last-event-id"] = self._last_event_id
        async with self._http.stream("POST", "/query", json=_body(asked.question), headers=headers) as response:
            if response.status_code != 200:
                await response.aread()
                return _outcome(response)
            async for kind, data in self._events(response):
                if asked.accepted_at is None:
                    asked.accepted_at = self._clock()
                if kind == "response":
                    return Outcome(data["status"], data["answer"])
                if kind == "error":
                    return _failure(data)
        raise Again

    async def _events(self, response: httpx.Response) -> AsyncIterator[tuple[str, Json]]:
        kind = ""
        async for line in response.aiter_lines():
            field, _, value = line.partition(": ")
            if field == "id":
                self._last_event_id = value
            elif field == "event":
                kind = value
            elif field == "data":
                yield kind, json.loads(value)


def _body(question: Question) -> Json:
    ids = {"query_id": question.query_id, "session_id": question.session_id}
    return {"query": question.text, "mode": "default", **ids}  # somebody is there who can be asked


def _require(response: httpx.Response, status: int) -> None:
    if response.status_code != status:
        raise Again(f"HTTP {response.status_code}: {response.text[:200]}")


def _outcome(response: httpx.Response) -> Outcome:
    """How the query ended. Raises `Again` for an answer that does not say so."""
    if response.is_server_error and response.status_code != FAILED_QUERY:
        raise Again(f"HTTP {response.status_code}: {response.text[:200]}")
    data: Json = response.json()
    if data.get("error"):
        return _failure(data)
    return Outcome(data["status"], data["answer"])


def _failure(data: Json) -> Outcome:
    kind = data["error"]["kind"]
    if kind in NOT_AN_OUTCOME:
        raise Again(f"{kind}: {data['error']['message']}")
    return Outcome(data.get("status", "failed"), kind)

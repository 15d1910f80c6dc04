"""A browser's stream on the real system: the line is cut, and the API is killed, in the middle of an answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx

STREAM = "stream-that-survives"
SECONDS = 90.0


class Browser:
    """Follows a conversation as a page does: the text is what fragments make it, then the answer."""

    def __init__(self, url: str, session_id: str, query_id: str) -> None:
        self._url, self._session_id, self._query_id = url, session_id, query_id
        self._last_id = self.text = ""
        self.resumed: list[bool] = []
        self.has_answer = False

    def read(self, tokens: int) -> None:
        """Read until the answer, or so many fragments of it."""
        headers = {"last-event-id": self._last_id} if self._last_id else {}
        address = f"{self._url}/stream?id={STREAM}"
        with httpx.stream("GET", address, headers=headers, timeout=SECONDS, trust_env=False) as response:
            for name, self._last_id, data in _events(response.iter_lines()):
                if name == "hello":
                    self.resumed.append(data["resumed"])
                elif name == "query":
                    tokens -= self._take(data["event"], data["data"])
                if self.has_answer or tokens <= 0:
                    return

    def carry(self, **body: Any) -> None:
        """Say what the stream is to carry."""
        carried = httpx.post(f"{self._url}/stream/{STREAM}", json=body, timeout=SECONDS, trust_env=False)
        assert carried.status_code == 200, carried.text

    def _take(self, event: str, data: Any) -> bool:
        if event == "token":
            self.text += data["text"]
        elif event == "snapshot" and data["complete"]:
            self.text = data["answer"]
        elif event == "response":
            self.text, self.has_answer = data["answer"], True
        return event == "token"


def _events(lines: Iterator[str]) -> Iterator[tuple[str, str, Any]]:
    fields: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, fields[name] = line.partition(": ")
        elif "data" in fields:
            yield fields["event"], fields["id"], json.loads(fields["data"])
            fields = {}


def test_an_answer_is_whole_and_once_whatever_happens_to_the_stream(live: Any) -> None:
    browser = Browser(live.system.api_url, "of-a-browser", "browsed")
    browser.carry(sessions=["of-a-browser"])
    asked = {"query": "What is the capital of Norway?", "session_id": "of-a-browser", "query_id": "browsed"}
    live.model_fails(asked["query"], "chunk_delay", seconds=0.1)
    assert httpx.post(f"{live.system.api_url}/query", json={**asked, "wait": False}, timeout=SECONDS).status_code == 202
    browser.read(tokens=1)
    begun = browser.text
    browser.read(tokens=1)  # the line was cut
    assert begun and browser.text.startswith(begun) and browser.resumed == [False, True]
    live.kill("api")
    browser.carry(sessions=["of-a-browser"], queries=["browsed"])
    browser.read(tokens=1000)
    assert browser.has_answer and browser.resumed == [False, True, False]
    record = live.http.get("/query/browsed").json()
    assert (browser.text, record["status"]) == (record["answer"], "answered")
    assert live.on_record("response.generation", "browsed") == 1

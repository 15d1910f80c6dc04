"""A long conversation on a small window, on the real system: nothing is cut by the server, nothing stated is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from local.cli.temporary_system import write_settings
from tests.warm.warm_system import WarmSystem

Json = dict[str, Any]

SECONDS = 90.0
WINDOW = 4096
TURNS, RESEARCH_EVERY, LOOK_UPS = 200, 19, 4
LOG_EVERY = 20  # turns; the stand-in keeps its last 200 requests
STORY = "a long conversation"

ARCHIVE = '''
"""An archive whose entries are much longer than the window."""

from typing import Annotated

from local.tools.tool import Tool

FILLER = "\\n\\n".join(f"Chapter {n}. The keepers of this lamp wrote down wind and weather." for n in range(160))


class ArchiveTool(Tool):
    """Look up lighthouses in old papers."""

    name = "archive"
    safety = "L0"

    async def run(self, query: Annotated[str, "What to look for"]) -> str:
        return f"Papers\\n\\n{FILLER}\\n\\nThe answer to {query}: it was lit in 1823.\\n\\n{FILLER}"
'''

# A summariser with a bad memory: of the summary so far it tells nothing on.
SUMMARISER = [
    {
        "user": "(?s)New turns:.*User: My dog is called Rex Bramble",
        "replies": [{"content": "FACTS\n- The user's dog is called Rex Bramble.\nSUMMARY\nThey spoke of gulls."}],
    },
    {"user": "New turns:", "replies": [{"content": "FACTS\nSUMMARY\nThey spoke of gulls and lamps."}]},
]
RESEARCH = {
    "user": "When was lamp",
    "replies": [
        *(
            {"tool_calls": [{"name": "archive", "arguments": {"query": f"keeper {number}: {{question}}"}}]}
            for number in range(LOOK_UPS)
        ),
        {"content": "In 1823."},
    ],
}


class Talk:
    """One conversation, and everything that the model server was sent."""

    def __init__(self, http: httpx.Client, system: WarmSystem) -> None:
        self.requests: dict[int, Json] = {}
        self._http, self._api, self._stand_in = http, system.api_url, f"{system.facts.model_url}/stand_in"

    def script(self, turns: list[Json]) -> None:
        self._http.post(f"{self._stand_in}/script", json={"story": STORY, "turns": turns}).raise_for_status()

    def ask(self, query: str) -> Json:
        response = self._http.post(f"{self._api}/query", json={"query": query, "session_id": "long"})
        assert response.status_code == 200, response.text
        answer: Json = response.json()
        missed = [said for said in answer["degraded"] if "a link was left out" not in said]  # the stand-in's own
        assert (answer["status"], missed) == ("answered", []), answer
        return answer

    def read_log(self) -> None:
        entries = self._http.get(f"{self._stand_in}/log", params={"idle": 1}).json()["requests"]
        self.requests |= {entry["number"]: entry for entry in entries}

    def session(self) -> Json:
        session: Json = self._http.get(f"{self._api}/sessions/long").json()
        return session


@pytest.fixture
def talk(tmp_path: Path) -> Any:
    config = write_settings(
        tmp_path / "config",
        {
            "generator": {"num_ctx": WINDOW},
            "system": {"participants": ["generator", "my_tools.archive:ArchiveTool"]},
        },
    )
    (config / "my_tools").mkdir()
    (config / "my_tools" / "archive.py").write_text(ARCHIVE)
    with (
        WarmSystem(tmp_path / "data", config_dir=config, flags=["--backend", "stand_in"]) as system,
        httpx.Client(timeout=SECONDS, trust_env=False) as http,
    ):
        yield Talk(http, system)


@pytest.mark.thorough
@pytest.mark.timeout(180)
def test_what_was_stated_first_is_answered_after_200_turns_and_the_server_never_had_to_cut(talk: Talk) -> None:
    talk.script([*SUMMARISER, RESEARCH])
    talk.ask("My dog is called Rex Bramble.")
    looked_up = 0
    for number in range(2, TURNS):
        is_research = number % RESEARCH_EVERY == 0
        asked = f"When was lamp {number} lit?" if is_research else f"Tell me a thing about gull number {number}."
        looked_up += len(talk.ask(asked)["tool_calls"])
        if number % LOG_EVERY == 0:
            talk.read_log()
    assert "Rex Bramble" in talk.ask("What is my dog called?")["answer"]
    talk.read_log()

    requests = [talk.requests[number] for number in range(1, len(talk.requests) + 1)]
    assert looked_up == 40
    assert len(requests) > TURNS + looked_up
    assert {request["status"] for request in requests} == {200}
    assert {request["options"]["num_ctx"] for request in requests} == {WINDOW}
    assert {request["truncate"] for request in requests} == {False}, "too long a prompt is refused, not cut"
    assert WINDOW // 2 < max(request["prompt_tokens"] for request in requests) <= WINDOW

    last_prompt = [request for request in requests if request["tools"]][-1]
    assert not any("My dog is called" in message["content"] for message in last_prompt["messages"])

    results = [request["messages"][-1] for request in requests if request["messages"][-1]["role"] == "tool"]
    assert len(results) == looked_up
    assert all("lit in 1823" in result["content"] for result in results)

    gauge = talk.session()["context"]
    assert gauge["limit"] == WINDOW
    assert abs(gauge["used"] - last_prompt["prompt_tokens"]) <= WINDOW // 20
    assert gauge["parts"]["summary"] > 0

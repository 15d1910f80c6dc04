"""Ordinary work with files needs no more questions than without the rule where the owner trusts the folder, and at most
one more where they do not yet."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from local.bus.envelope import Envelope
from local.bus.vocabulary import TRUST_FOLDER
from local.core.trust import TrustRegistry
from local.files.participant import OF_FILES, FileTools, editor_of
from local.files.tools import FilesConfig, WorkspaceFiles
from local.permissions.messages import ApprovalRequest, PermissionRequest, PermissionResult
from local.runtime.participant import Resources
from local.web.search import SearchHit

Assistant = Any  # of conftest.py
FERRY = "when does the ferry leave"
Conversation = list[str]  # what the user says in each turn
EVERY = 5  # of all conversations one in so many is in the default run
SECONDS = 90.0
FILES = {
    "notes.md": "# Notes\n\nBuy milk. Call Ann about the boat.\n",
    "todo.md": "- paint the boat\n- book the ferry\n",
    "budget.csv": "what,euro\nferry,80\npaint,35\n",
    "tides.py": "def high_water(day):\n    return 6 * day\n",
    "letters/ann.txt": "Dear Ann,\n\nthe boat is dry.\n",
}


def call(tool: str, **args: Any) -> str:
    return f"@assistant call {tool} {json.dumps(args)}"


def conversations(page: str) -> Iterator[Conversation]:
    """What people ask for day by day; DIR is the folder of a conversation, `page` a page of the web."""
    visit = call("web_fetch", url=page)
    for name in FILES:
        read = call("read_file", path=f"DIR/{name}")
        yield [read]
        yield [call("list_files", path="DIR"), read]
        yield [f"{read}\n{call('write_file', path='DIR/summary.md', content=f'All of {name}.')}"]
        yield [call("web_search", query=FERRY), call("write_file", path="DIR/ferry.md", content="10:30")]
        yield [f"Read {page} for it.\n{visit}\n{call('write_file', path='DIR/trip.md', content='Day 1: the ferry.')}"]
        yield [read, f"Plan it with {page} now.\n{visit}", call("write_file", path="DIR/plan.md", content="Ferry.")]


class Owner:
    """Somebody at a frontend who allows everything. `asked` are the tools about which they were asked, by session; a
    question that is told again, as after a slow answer, is still one."""

    def __init__(self, bus: Any) -> None:
        self.asked: defaultdict[str, list[str]] = defaultdict(list)
        self._bus, self._answers, self._seen = bus, set[asyncio.Task[Any]](), set[str]()
        bus.subscribe(ApprovalRequest.subject, self._hear)

    def _hear(self, envelope: Envelope) -> None:
        asked = ApprovalRequest.decode(envelope.payload)
        if asked.call_id in self._seen:
            return
        self._seen.add(asked.call_id)
        self.asked[asked.session_id].append(asked.tool)
        decision = PermissionRequest(verb="decide", call_id=asked.call_id, decision="allow", by="page")
        self._answers.add(asyncio.ensure_future(self._bus.request(decision, PermissionResult, SECONDS)))


async def converse(assistant: Assistant, name: str, turns: Conversation) -> None:
    """A conversation about a folder with files that LoCAL2 has not written."""
    folder = assistant.folder / "workspace" / name
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    for number, turn in enumerate(turns):
        said = turn.replace("DIR", name)
        response = await assistant.ask(said, f"{name}q{number}", name, options={"mode": "default"})
        assert response.tool_calls and [call.error for call in response.tool_calls if call.error] == [], turn


@pytest.mark.parametrize("every", [EVERY, pytest.param(1, marks=pytest.mark.thorough)], ids=["some", "all"])
async def test_everyday_work_asks_no_more_in_a_trusted_folder_and_once_more_in_another(
    assistant: Assistant, every: int
) -> None:
    work = assistant.folder / "workspace"  # where the gatekeeper expects it
    work.mkdir()
    assistant.user = None  # the workspace is the owner's
    registry, resources = TrustRegistry(assistant.folder / "settings"), Resources(assistant.folder)
    files = WorkspaceFiles(FilesConfig(), editor_of(FilesConfig(), resources), registry)
    tools = FileTools(FilesConfig(), [tool(FilesConfig(), files) for tool in OF_FILES], files.editor)
    await assistant.begin(more=(tools.with_records(resources),))
    owner = Owner(assistant.stage.frontend.bus)
    page = assistant.web.add("/trip", "The ferry leaves at 10:30.")
    assistant.web.hits[FERRY] = [SearchHit("The ferry", page, "At 10:30.")]
    for number, turns in list(enumerate(conversations(page)))[::every]:
        counts = []
        for setting in ("without the rule", "trusted", "not trusted"):
            files.config = FilesConfig(strange_folders=setting != "without the rule")
            if registry.trusted(work):
                registry.distrust(work)
            if setting == "trusted":
                registry.trust(work)
            await converse(assistant, name := f"{setting[0]}{number}", turns)
            counts.append(owner.asked[name])
        before, trusted, untrusted = counts
        assert trusted == before, turns
        untrusted_ones = [tool for tool in untrusted if tool != TRUST_FOLDER]
        assert untrusted_ones == before and len(untrusted) - len(before) <= 1, turns
        assert (TRUST_FOLDER in untrusted) is ("list_files" in turns[0] or turns[0].startswith("@assistant call read"))

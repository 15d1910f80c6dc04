"""The tools that keep notes, as the model calls them: in one process with the search, and each needs leave."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from local.bus.envelope import Envelope
from local.memory import tools as memory_access
from local.memory.messages import EngramRecord, MemoryRequest, MemoryResult, engram_id
from local.memory.tools import MemoryTools
from local.runtime.participant import Participant, Resources, Settingless, on
from tests.tools import conftest as tools_stage

serve, granted = tools_stage.serve, tools_stage.granted
Serve = Callable[..., Awaitable[Any]]
NOTE = "1a2b3c4d" + "0" * 24


class OneNote(Participant):
    """A memory that has one note."""

    name = "memory"
    publishes = ("memory.result.notes",)

    def __init__(self) -> None:
        super().__init__(Settingless())

    @on(MemoryRequest)
    async def answer(self, request: MemoryRequest, envelope: Envelope) -> MemoryResult:
        note = EngramRecord(
            engram_id=NOTE, query_id="q0:0:0", respondent_id="A", session_id="s", query="cabin", answer="A Viessmann",
            origin="assistant", asked_at=1.0, note_of="q0",
        )  # fmt: skip
        return MemoryResult(verb=request.verb, engrams=(note,))


@pytest.fixture
async def tools(serve: Serve, tmp_path: Path) -> Any:
    await serve(OneNote())
    return await serve(MemoryTools.build(Settingless(), Resources(tmp_path)))


async def test_a_note_is_named_by_the_id_that_the_memory_will_know_it_by(tools: Any) -> None:
    told = await tools.call({"text": "Blue", "category": "paint"}, "q1:2:0", tool="memory_write")
    assert (told.error, engram_id("q1:2:0", "A")[:8] in told.result, told.tainted) == (None, True, False)


@pytest.mark.parametrize(
    ("args", "kind"), [({"text": " "}, "bad_argument"), ({"text": "x" * 2001}, "bad_arguments"), ({}, "bad_arguments")]
)
async def test_a_note_that_says_nothing_or_too_much_is_refused(tools: Any, args: dict[str, str], kind: str) -> None:
    assert (await tools.call(args, tool="memory_write")).error.kind == kind


async def test_a_note_that_there_is_can_be_replaced_and_withdrawn(tools: Any) -> None:
    assert "replaced" in (await tools.call({"note": NOTE[:8], "text": "Green"}, tool="memory_edit")).result
    assert "withdrawn" in (await tools.call({"note": NOTE[:8]}, "q1:0:1", tool="memory_edit")).result
    unknown = (await tools.call({"note": "ffffffff"}, "q1:0:2", tool="memory_edit")).error
    assert (unknown.kind, NOTE[:8] in unknown.message) == ("bad_argument", True)


async def test_without_a_memory_nothing_is_said_to_be_noted(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_access, "PRESENCE_SECONDS", 0.1)
    tools = await serve(MemoryTools.build(Settingless(), Resources(tmp_path)))
    assert (await tools.call({"text": "Blue"}, tool="memory_write")).error.kind == "unavailable"

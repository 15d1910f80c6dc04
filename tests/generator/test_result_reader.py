"""A result that was cut off can be read on in by the model, within the turn that brought it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from local.bus.blobs import BlobStore
from local.bus.messages import BusDead, ResponseGeneration, ToolCallRecord, ToolRequest, ToolResult
from local.core.errors import MalformedFrame
from local.generator.builtin_tools import PART_CHARS
from local.generator.steps import READ_RESULT
from local.models.chat import ToolCall
from local.runtime.participant import Settingless
from local.tools.tool import Tool, ToolOutput

LONG = "".join(f"line {number} ä\n" for number in range(5000))
SHOWN = 1000


class Library(Tool):
    """Tell all there is."""

    name = "library"
    safety = "L0"
    max_result_chars = SHOWN
    trusted = True

    def __init__(self, *, tainted: bool = False) -> None:
        super().__init__(Settingless())
        self._tainted = tainted

    async def run(self) -> ToolOutput:
        return ToolOutput(LONG, ("engram:e1",), links=("https://a.example/",), tainted=self._tainted)


@pytest.fixture
async def library(stage: Any, tmp_path: Path) -> Any:
    """A stage with a generator and a tool whose results are cut off."""
    stage.blobs = BlobStore(tmp_path / "blobs")
    await stage.generator()
    await stage.tool(Library())
    return stage


async def read(stage: Any, *calls: dict[str, Any], query_id: str = "q1") -> list[ToolCallRecord]:
    """A turn in which the model has the library tell all, and reads on so often; how the calls ended."""
    stage.model.will_say(ToolCall("library", {}))
    for args in calls:
        stage.model.will_say(ToolCall(READ_RESULT, args))
    stage.model.will_say("Done.")
    await stage.frontend.ask("Read!", query_id)
    response: ResponseGeneration = await stage.frontend.hears(ResponseGeneration, query_id=query_id)
    return list(response.tool_calls)


@pytest.mark.thorough
async def test_a_generator_that_was_killed_while_it_read_on_goes_on_reading(stage: Any, tmp_path: Path) -> None:
    stage.blobs = BlobStore(tmp_path / "blobs")
    doomed = await stage.doomed_generator("turn.results_in", passes=2)
    await stage.tool(Library(tainted=True))
    stage.model.will_say(ToolCall("library", {}))
    stage.model.will_say(ToolCall(READ_RESULT, {"start": 3000}))
    stage.model.will_say("Done.")
    await stage.frontend.ask("Read!", "q1")
    await doomed.dead()
    await stage.generator()
    _, part = (await stage.frontend.hears(ResponseGeneration, query_id="q1")).tool_calls
    assert (part.tainted, part.result.startswith(LONG[3000:3100])) == (True, True)


def test_a_part_of_a_blob_is_read_without_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("local.bus.blobs.SKIPPED_AT_ONCE", 7)
    blobs = BlobStore(tmp_path)
    text = "ä\r\n€𝄞x" * 20
    name = blobs.put(text.encode())
    for start in (0, 1, 13, len(text) - 1, len(text), len(text) + 50):
        assert blobs.text(name, start, 9) == text[start : start + 9]
    with pytest.raises(MalformedFrame, match="not in the store"):
        blobs.text("0" * 64, 0, 1)


async def test_the_model_reads_on_where_the_text_was_cut_off_to_its_end(library: Any) -> None:
    """Everybody hears of that as of any other call, and a part is forgotten with what it is of."""
    end, starts = len(LONG), range(SHOWN, len(LONG), PART_CHARS)
    first, *parts, last = await read(
        library,
        *({"call_id": "q1:0:0", "start": str(start)} for start in starts[:2]),  # as models write ids and numbers
        {"start": end - 5},  # of the latest result
    )
    assert [asked.tools for asked in library.model.asked] == [["library"]] * 5  # the note tells how to read on
    told = next(message for message in library.model.asked[1].messages if message["role"] == "tool")["content"]
    note = f"it has {end} characters. To read on, call read_result with call_id=0:0 and start={SHOWN}."
    assert note in told.splitlines()[0] and first.result.startswith(LONG[:SHOWN])
    texts = [part.result.rpartition("\n\n")[0] for part in parts]
    assert "".join(texts) == LONG[SHOWN : SHOWN + 2 * PART_CHARS]
    assert f"[Characters 1000 to 9000 of {end}. To read on, call read_result with start=9000.]" in parts[0].result
    assert last.result == f"{LONG[-5:]}\n\n[Characters {end - 5} to {end} of {end}.]"
    [request, *_] = library.frontend.of(ToolRequest, tool=READ_RESULT)
    [result, *_] = library.frontend.of(ToolResult, tool=READ_RESULT)
    assert (request.call_id, result.call_id, result.result) == (parts[0].call_id, parts[0].call_id, parts[0].result)
    assert (last.sources, last.links, last.tainted) == (("engram:e1",), ("https://a.example/",), False)


async def test_what_cannot_be_read_is_explained(library: Any) -> None:
    faults = (
        ({"call_id": "9:9", "start": 0}, "unknown_call", "of these: 0:0"),
        ({"start": len(LONG)}, "bad_arguments", f"the result has {len(LONG)} characters"),
        ({"start": -1}, "bad_arguments", "start: Input should be greater than or equal to 0"),
    )
    first, *records = await read(library, *(args for args, _, _ in faults))
    for record, (_, kind, why) in zip(records, faults, strict=True):
        assert record.error is not None
        assert (record.error.kind, why in record.error.message) == (kind, True)
    library.model.will_say(ToolCall(READ_RESULT, {"call_id": "q1:0:0", "start": 0}))
    library.model.will_say("Done.")
    await library.frontend.ask("And now?", "q2")
    [record] = (await library.frontend.hears(ResponseGeneration, query_id="q2")).tool_calls
    assert record.error.message == "read_result: no result of this turn was cut off"
    library.blobs.remove(str(first.whole["$blob"]))
    library.blobs.put = lambda data: first.whole["$blob"]  # as if it were there until the call had ended
    _, record = await read(library, {"start": 0}, query_id="q3")
    assert (record.result, record.error.kind) == (None, "not_kept")


async def test_a_small_model_reads_on_though_the_tool_is_not_on_its_list_and_nobody_else_can_offer_it(
    stage: Any, tmp_path: Path
) -> None:
    class Impostor(Library):
        """Tell something else."""

        name = READ_RESULT

    stage.model.parameters, stage.blobs = 0.5, BlobStore(tmp_path / "blobs")
    await stage.generator()
    await stage.tool(Library())
    await stage.tool(Impostor())
    letter = await stage.frontend.hears(BusDead)
    assert letter.error.message == "tool read_result of read_result is refused: every turn has one of that name"
    stage.model.will_say(ToolCall("library", {}))
    stage.model.will_say(json.dumps({"name": READ_RESULT, "arguments": {"call_id": "0:0", "start": SHOWN}}))
    stage.model.will_say("Done.")
    await stage.frontend.ask("Read!", "q1")
    response = await stage.frontend.hears(ResponseGeneration, query_id="q1")
    _, part = response.tool_calls
    assert response.answer == "Done." and part.result.startswith(LONG[SHOWN : SHOWN + PART_CHARS])
    assert stage.model.asked[0].tools == ["library"]

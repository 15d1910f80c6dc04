"""A turn that another process goes on with is as tainted as it was, and what it may do is decided alike."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from agent_stage.dice import Dice
from agent_stage.hostile_web import NoteTool

from local.bus.messages import ResponseGeneration, ToolCallRecord
from local.generator.steps import parse_record, parse_step
from local.generator.taint_policy import TAINTED
from local.models.chat import ToolCall


class TrustedDice(Dice):
    """Roll a dice that no stranger has thrown."""

    trusted = True


class TrustedNotes(NoteTool):
    """Write a note that no stranger reads."""

    trusted = True


NOTE = ToolCall("note", {"text": "it was a 5"})
KILLED = {"before the call": ("turn.step_stored", 3), "after it": ("turn.results_in", 2)}


@pytest.mark.parametrize(
    ("killed", "dice", "kinds"),
    [
        ("before the call", Dice, [None, TAINTED]),
        ("after it", TrustedDice, [None, None]),
        pytest.param("after it", Dice, [None, TAINTED], marks=pytest.mark.thorough),
        pytest.param("before the call", TrustedDice, [None, None], marks=pytest.mark.thorough),
    ],
)
async def test_a_turn_whose_process_is_killed_between_a_step_and_a_call_decides_as_it_had(
    stage: Any, tmp_path: Path, killed: str, dice: type[Dice], kinds: list[str | None]
) -> None:
    doomed, note = await stage.doomed_generator(*KILLED[killed]), TrustedNotes(tmp_path)
    await stage.tool(dice())
    await stage.tool(note)
    await stage.gatekeeper(mode="dontAsk", allowed_tools=["note"])
    stage.model.will_say(ToolCall("dice", {}))
    stage.model.will_say(NOTE)
    stage.model.will_say("Done.")
    await stage.frontend.ask("Roll!", "q1")
    await doomed.dead()
    await stage.generator()
    response: ResponseGeneration = await stage.frontend.hears(ResponseGeneration, query_id="q1")
    assert [call.error and call.error.kind for call in response.tool_calls] == kinds
    assert response.tainted is (TAINTED in kinds)
    assert note.notes == ([] if TAINTED in kinds else ["it was a 5"])
    assert len(stage.model.asked) == 3  # what was stored was not asked again


async def test_a_turn_that_was_stored_before_taint_was_noted_is_tainted_when_it_goes_on(
    stage: Any, tmp_path: Path
) -> None:
    doomed, note = await stage.doomed_generator("turn.step_stored", 3), TrustedNotes(tmp_path)
    await stage.tool(TrustedDice())
    await stage.tool(note)
    await stage.gatekeeper(mode="dontAsk", allowed_tools=["note"])
    stage.model.will_say(ToolCall("dice", {}))
    stage.model.will_say(NOTE)
    stage.model.will_say("Done.")
    await stage.frontend.ask("Roll!", "q1")
    await doomed.dead()
    with closing(sqlite3.connect(stage.database)) as db, db:
        for number, body in db.execute("SELECT number, body FROM steps").fetchall():
            db.execute("UPDATE steps SET body = ? WHERE number = ?", (_old(body), number))
    await stage.generator()
    response: ResponseGeneration = await stage.frontend.hears(ResponseGeneration, query_id="q1")
    assert (response.tool_calls[1].error.kind, response.tainted, note.notes) == (TAINTED, True, [])


def _old(body: str) -> str:
    """A step as it was stored before taint was noted."""
    step = json.loads(body)
    for each in (step, *step.get("records", ())):
        each.pop("tainted", None)
    return json.dumps(step)


def test_what_was_stored_with_its_taint_says_the_same_when_it_is_read() -> None:
    for tainted in (True, False):
        record = ToolCallRecord(call_id="q1:0:0", tool="dice", args={}, result="5", tainted=tainted)
        step = json.dumps({"kind": "tools", "records": [json.loads(record.model_dump_json())]})
        assert parse_record(record.model_dump_json()).tainted is tainted
        assert parse_step(step).tainted is tainted
    assert parse_record('{"call_id": "q1:0:0", "tool": "dice", "args": {}, "result": "5"}').tainted

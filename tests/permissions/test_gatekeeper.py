"""A call that may do more than read: it is asked about once, decided once, and made once, whatever dies meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from local.bus.messages import AgentTransition, AnswerOptions, ResponseGeneration, SessionDeleted, ToolRequest
from local.core.errors import StoreFull
from local.models.chat import ToolCall
from local.permissions.messages import (
    ApprovalDecision,
    ApprovalRequest,
    GrantRequest,
    GrantResult,
    PermissionRequest,
    PermissionResult,
)
from local.permissions.store import ApprovalStore
from local.runtime.participant import Settingless
from local.tools.tool import Tool

SECONDS = 20.0
MILK = {"path": "list.txt", "content": "milk"}


class PenTool(Tool):
    """Write a file."""

    name = "pen"
    effect = "write"
    safety = "L1"
    category = "write"
    trusted = True

    def __init__(self, folder: Path) -> None:
        super().__init__(Settingless())
        self._record_path = folder / "pen.db"
        self.written: list[str] = []

    async def run(self, path: str, content: str) -> str:
        self.written.append(content)
        return "Written."


@pytest.fixture
async def study(stage: Any, tmp_path: Path) -> AsyncIterator[Any]:
    """A stage with a generator, a pen, and nobody yet who gives leave to use it."""
    await stage.generator()
    stage.pen = PenTool(tmp_path)
    await stage.tool(stage.pen)
    yield stage


async def ask(
    stage: Any, query_id: str, args: dict[str, Any] | None = None, session: str = "s", **options: Any
) -> None:
    stage.model.will_say(ToolCall("pen", args or MILK))
    stage.model.will_say("Done.")
    wanted = AnswerOptions(**options) if options else None
    await stage.door.ask("Write!", query_id, session=session, options=wanted)


async def decide(stage: Any, call_id: str, decision: str, **fields: Any) -> PermissionResult:
    request = PermissionRequest(verb="decide", call_id=call_id, decision=decision, by="page", **fields)
    return await stage.door.bus.request(request, PermissionResult, SECONDS)


def all_of(folder: Path) -> bytes:
    """What stands in the gatekeeper's files."""
    return b"".join(file.read_bytes() for file in folder.glob("approvals.db*"))


async def end(stage: Any, query_id: str) -> tuple[str | None, str]:
    """The kind of its call's error and what the model read."""
    response = await stage.door.hears(ResponseGeneration, query_id=query_id)
    [call] = response.tool_calls
    return call.error and call.error.kind, call.error.message if call.error else call.result


async def test_a_call_is_made_when_a_person_has_allowed_it_and_not_before(study: Any) -> None:
    await study.gatekeeper(answer_seconds=300)
    await ask(study, "q1")
    asked = await study.door.hears(ApprovalRequest, query_id="q1")
    assert (asked.call_id, asked.tool, asked.args, asked.level) == ("q1:0:0", "pen", MILK, "L1")
    assert (asked.session_id, asked.expires_at - asked.asked_at) == ("s", 300)
    await study.door.hears(AgentTransition, to_state="WAITING_FOR_LEAVE")
    assert (study.pen.written, study.door.of(ToolRequest)) == ([], [])
    assert (await decide(study, "q1:0:0", "allow")).error is None
    assert await end(study, "q1") == (None, "Written.")
    assert study.pen.written == ["milk"]
    decision = await study.door.hears(ApprovalDecision, query_id="q1")
    assert (decision.call_id, decision.decision, decision.by, decision.session_id) == ("q1:0:0", "allow", "page", "s")
    record = [
        entry.frame.partition("\0")[0] for entry in await study.on_record("q1", ApprovalRequest, ApprovalDecision)
    ]
    assert record == ["approval.request", "approval.decision"]


async def test_what_a_person_denies_is_not_made_and_the_model_reads_why(study: Any) -> None:
    await study.gatekeeper()
    await ask(study, "q1")
    await study.door.hears(ApprovalRequest)
    await decide(study, "q1:0:0", "deny")
    assert await end(study, "q1") == ("denied", "pen was not run: the user said no")
    assert (study.pen.written, study.door.of(ToolRequest)) == ([], [])


async def test_silence_denies(study: Any) -> None:
    await study.gatekeeper(answer_seconds=0.05)
    await ask(study, "q1")
    assert await end(study, "q1") == ("denied", "pen was not run: nobody answered within 0.05 s")
    assert (await study.door.hears(ApprovalDecision)).by == "silence"


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The one that the gatekeeper's record is on: full until somebody says otherwise; tells when that was noticed."""

    class Disk:
        def __init__(self) -> None:
            self.is_full, self.noticed = True, asyncio.Event()

        def fill(self, method: str) -> None:
            """Nothing can be written by that method of the store."""
            write = getattr(ApprovalStore, method)

            async def full(store: ApprovalStore, *row: Any) -> Any:
                if self.is_full:
                    self.noticed.set()
                    raise StoreFull("approvals.db: the disk is full")
                return await write(store, *row)

            monkeypatch.setattr(ApprovalStore, method, full)

    return Disk()


async def test_a_question_that_finds_the_disk_full_is_asked_once_there_is_room(study: Any, disk: Any) -> None:
    disk.fill("ask")
    await study.gatekeeper()
    await ask(study, "q1")
    await asyncio.wait_for(disk.noticed.wait(), SECONDS)
    assert study.door.of(ApprovalRequest) == []
    disk.is_full = False
    await study.door.hears(ApprovalRequest)
    await decide(study, "q1:0:0", "allow")
    assert await end(study, "q1") == (None, "Written.")


async def test_while_the_disk_stays_full_the_call_is_denied_and_says_why(
    study: Any, disk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("local.permissions.gatekeeper.PATIENCE_SECONDS", 0.01)
    disk.fill("ask")
    await study.gatekeeper()
    await ask(study, "q1")
    assert await end(study, "q1") == ("denied", "pen was not run: approvals.db: the disk is full")
    assert study.pen.written == []


async def test_silence_denies_on_a_full_disk_once_there_is_room(
    study: Any, disk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("local.generator.permissions.LOOK_SECONDS", 1000.0)  # nobody asks how it stands
    disk.fill("decide")
    await study.gatekeeper(answer_seconds=0.05)
    await ask(study, "q1")
    await asyncio.wait_for(disk.noticed.wait(), SECONDS)
    disk.is_full = False
    assert (await study.door.hears(ApprovalDecision)).by == "silence"


async def test_the_first_answer_counts_and_the_second_hears_that_it_came_too_late(study: Any) -> None:
    await study.gatekeeper()
    await ask(study, "q1")
    await study.door.hears(ApprovalRequest)
    assert (await decide(study, "q1:0:0", "deny")).error is None
    late = await decide(study, "q1:0:0", "allow")
    assert late.error is not None and late.error.kind == "conflict"
    assert "waits for no decision" in late.error.message
    assert (await end(study, "q1"))[0] == "denied"
    assert len(study.door.of(ApprovalDecision)) == 1


async def test_the_owners_settings_and_the_querys_mode_are_asked_before_anybody(study: Any) -> None:
    await study.gatekeeper(mode="dontAsk")
    await ask(study, "q1")
    assert await end(study, "q1") == (
        "denied",
        "pen was not run: it needs leave, and nobody is there who could be asked",
    )
    await ask(study, "q2", mode="acceptEdits")
    assert await end(study, "q2") == (None, "Written.")
    assert study.door.of(ApprovalRequest) == []


async def test_what_is_allowed_for_a_conversation_is_asked_once_there_and_again_elsewhere(study: Any) -> None:
    await study.gatekeeper()
    await ask(study, "q1")
    await study.door.hears(ApprovalRequest)
    await decide(study, "q1:0:0", "allow_session")
    await end(study, "q1")
    await ask(study, "q2", {**MILK, "content": "bread"})  # of a tool for files: this file
    assert (await end(study, "q2"))[0] is None
    await ask(study, "q3", {**MILK, "path": "other.txt"})
    assert (await study.door.hears(ApprovalRequest, 2)).call_id == "q3:0:0"
    await decide(study, "q3:0:0", "deny")
    await end(study, "q3")
    await ask(study, "q4", session="other")
    assert (await study.door.hears(ApprovalRequest, 3)).call_id == "q4:0:0"
    [kept] = (await study.door.bus.request(PermissionRequest(verb="remembered"), PermissionResult, SECONDS)).remembered
    assert (kept.tool, kept.args, kept.session_id) == ("pen", {"path": "list.txt"}, "s")


async def test_what_was_allowed_for_a_conversation_can_be_taken_back(study: Any) -> None:
    await study.gatekeeper()
    await ask(study, "q1")
    await study.door.hears(ApprovalRequest)
    await decide(study, "q1:0:0", "allow_session")
    await end(study, "q1")
    bus = study.door.bus
    [kept] = (await bus.request(PermissionRequest(verb="remembered"), PermissionResult, SECONDS)).remembered
    forget = PermissionRequest(verb="forget", leave_id=kept.leave_id)
    assert (await bus.request(forget, PermissionResult, SECONDS)).error is None
    again = (await bus.request(forget, PermissionResult, SECONDS)).error
    assert again is not None and again.kind == "not_found"
    await ask(study, "q2")
    assert (await study.door.hears(ApprovalRequest, 2)).call_id == "q2:0:0"


async def test_a_question_waits_for_its_user_through_the_death_of_who_asks_it(study: Any) -> None:
    first = await study.gatekeeper()
    await ask(study, "q1")
    asked = await study.door.hears(ApprovalRequest)
    await first.kill()
    await study.gatekeeper()
    waiting = (await study.door.bus.request(PermissionRequest(verb="list"), PermissionResult, SECONDS)).waiting
    assert waiting == (asked,)
    await decide(study, "q1:0:0", "allow")
    assert await end(study, "q1") == (None, "Written.")
    assert len(await study.on_record("q1", ApprovalRequest)) == 1


@pytest.mark.parametrize("decided", [True, False])
async def test_a_turn_that_another_process_goes_on_with_asks_nothing_again(study: Any, decided: bool) -> None:
    await study.gatekeeper()
    await ask(study, "q1")
    await study.door.hears(ApprovalRequest)
    await study._generator.kill()
    if decided:
        await decide(study, "q1:0:0", "allow")
    await study.generator()
    if not decided:
        await study.door.until(lambda: len(study.door.of(GrantRequest)) >= 2)
        await decide(study, "q1:0:0", "allow")
    assert await end(study, "q1") == (None, "Written.")
    assert (study.pen.written, len(await study.on_record("q1", ApprovalRequest))) == (["milk"], 1)


async def test_a_query_that_is_cancelled_withdraws_its_question(study: Any) -> None:
    await study.gatekeeper()
    await ask(study, "q1")
    await study.door.hears(ApprovalRequest)
    await study.door.cancel("q1")
    assert (await study.door.hears(ResponseGeneration, query_id="q1")).status == "cancelled"
    assert (await study.door.hears(ApprovalDecision)).by == "cancelled"
    late = await decide(study, "q1:0:0", "allow")
    assert late.error is not None and late.error.kind == "conflict"


async def test_nothing_is_kept_of_a_session_that_was_deleted(study: Any, tmp_path: Path) -> None:
    await study.gatekeeper()
    await ask(study, "q1", {"path": "canary.txt", "content": "canary"})
    await study.door.hears(ApprovalRequest)
    await decide(study, "q1:0:0", "allow_session")
    await end(study, "q1")
    await ask(study, "q2", {"path": "canary2.txt", "content": "canary"})
    await study.door.hears(ApprovalRequest, 2)
    assert b"canary" in all_of(tmp_path)
    await study.door.bus.publish(SessionDeleted(deleted_session_id="s"))
    bus = study.door.bus
    while (await bus.request(PermissionRequest(verb="list"), PermissionResult, SECONDS)).waiting:
        pass
    assert (await bus.request(PermissionRequest(verb="remembered"), PermissionResult, SECONDS)).remembered == ()
    assert b"canary" not in all_of(tmp_path)


async def test_without_a_gatekeeper_nothing_is_made_that_needs_leave(
    study: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("local.generator.permissions.PRESENCE_SECONDS", 0.01)
    await ask(study, "q1")
    kind, message = await end(study, "q1")
    assert (kind, study.pen.written) == ("unavailable", [])
    assert message == "pen was not run: it needs leave, and no gatekeeper runs that could give it"


async def test_a_tool_that_only_reads_is_not_used_either_where_the_owner_has_it_denied(
    study: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PenTool, "safety", "L0")
    monkeypatch.setattr(PenTool, "effect", "read")
    await study.tool(PenTool(study.database.parent), "pen")
    await study.gatekeeper(denied_tools=["pen"])
    await ask(study, "q1")
    kind, message = await end(study, "q1")
    assert (kind, message) == ("denied", "pen was not run: it is on the owner's list of what is denied")
    assert (study.pen.written, study.door.of(ToolRequest)) == ([], [])


async def test_such_a_tool_is_not_used_before_a_gatekeeper_has_said_so(
    stage: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("local.generator.permissions.PRESENCE_SECONDS", 0.01)
    monkeypatch.setattr(PenTool, "safety", "L0")
    monkeypatch.setattr(PenTool, "effect", "read")
    pen = PenTool(tmp_path)
    await stage.tool(pen)
    await stage.generator(denied_tools=["pen"])
    await ask(stage, "q1")
    kind, _ = await end(stage, "q1")
    assert (kind, pen.written, stage.door.of(ToolRequest)) == ("unavailable", [], [])


async def test_another_call_under_a_known_id_is_denied(study: Any) -> None:
    await study.gatekeeper()
    await ask(study, "q1")
    await study.door.hears(ApprovalRequest)
    await decide(study, "q1:0:0", "allow")
    await end(study, "q1")
    forged = GrantRequest(query_id="q1", call_id="q1:0:0", tool="pen", args={**MILK, "content": "poison"})
    result = await study.door.bus.request(forged, GrantResult, SECONDS)
    assert (result.verdict, result.grant, result.why) == (
        "denied", None, "leave was asked for another call under its id",
    )  # fmt: skip


async def test_a_user_answers_for_their_own_and_decides_about_calls_only_where_the_owner_lets_them(study: Any) -> None:
    await study.gatekeeper()
    await ask(study, "q1")
    await study.door.hears(ApprovalRequest)
    refused = await decide(study, "q1:0:0", "allow", of_user="user")
    assert refused.error is not None and refused.error.kind == "forbidden"
    unseen = await decide(study, "q1:0:0", "allow", of_user="somebody")
    assert unseen.error is not None and unseen.error.kind == "conflict"
    listed = PermissionRequest(verb="list", of_user="somebody")
    assert (await study.door.bus.request(listed, PermissionResult, SECONDS)).waiting == ()


def test_a_second_respondent_asks_for_no_leave() -> None:
    from local.bus.messages import ToolSchema
    from local.generator.steps import PlannedCall
    from local.generator.turn import SideEffectPolicy

    call = PlannedCall(call_id="q:0:0", tool="pen", args={})
    schema = ToolSchema(tool="pen", description="", parameters={}, effect="read", safety="L1")
    record = SideEffectPolicy().settle(call, schema)
    assert record is not None and record.error is not None and record.error.kind == "fenced"

"""A call that may do more than read: it is asked about once, decided once, and made once, whatever dies meanwhile."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from agent_stage.pen import MILK, PenTool, decide

from local.bus.bus import Bus
from local.bus.envelope import Trace
from local.bus.message import Message
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
from local.runtime.machine import changes

SECONDS = 90.0


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
    await stage.frontend.ask("Write!", query_id, session=session, options=wanted)


def all_of(folder: Path) -> bytes:
    """What stands in the gatekeeper's files."""
    return b"".join(file.read_bytes() for file in folder.glob("approvals.db*"))


async def end(stage: Any, query_id: str) -> tuple[str | None, str]:
    """The kind of its call's error and what the model read."""
    response = await stage.frontend.hears(ResponseGeneration, query_id=query_id)
    [call] = response.tool_calls
    return call.error and call.error.kind, call.error.message if call.error else call.result


@pytest.mark.parametrize(
    ("folder", "denied"), [(".", []), ("workspace/..", []), ("workspace", ["trust_folder"])], ids=str
)
async def test_whether_a_folder_is_trusted_is_asked_about_the_workspace_alone_and_not_where_that_is_denied(
    stage: Any, tmp_path: Path, folder: str, denied: list[str]
) -> None:
    (tmp_path / "workspace").mkdir()
    await stage.gatekeeper(denied_tools=denied)
    args = {"folder": str(tmp_path / folder)}
    wanted = GrantRequest(query_id="q1", call_id="q1:0:0:folder", tool="trust_folder", args=args)
    result = await stage.frontend.bus.request(wanted, GrantResult, SECONDS)
    assert result.decision == "deny" and stage.frontend.of(ApprovalRequest) == []


async def test_a_request_names_its_user_who_may_deny_what_the_owner_alone_allows(study: Any) -> None:
    await study.gatekeeper()
    await ask(study, "q1")
    asked = await study.frontend.hears(ApprovalRequest, query_id="q1")
    assert (asked.user_id, asked.owner_decides) == ("user", True)
    assert (await decide(study, "q1:0:0", "deny", of_user="user")).error is None
    assert (await end(study, "q1"))[0] == "denied"


async def test_a_call_is_made_when_a_person_has_allowed_it_and_not_before(
    study: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first answer counts, of somebody who may give it, and for that call alone; the turn has it at once."""
    monkeypatch.setattr("local.bus.bus.FIRST_RESEND_SECONDS", 1000.0)  # nothing is sent again
    await study.gatekeeper(answer_seconds=300)
    await ask(study, "q1")
    asked = await study.frontend.hears(ApprovalRequest, query_id="q1")
    assert (asked.call_id, asked.tool, asked.args, asked.level) == ("q1:0:0", "pen", MILK, "L1")
    assert (asked.session_id, asked.expires_at - asked.asked_at) == ("s", 300)
    await study.frontend.hears(AgentTransition, to_state="WAITING_FOR_APPROVAL")
    assert (study.pen.written, study.frontend.of(ToolRequest)) == ([], [])
    for user, kind in (("user", "forbidden"), ("somebody", "conflict")):
        refused = await decide(study, "q1:0:0", "allow", of_user=user)
        assert refused.error is not None and refused.error.kind == kind
    listed = PermissionRequest(verb="list", of_user="somebody")
    assert (await study.frontend.bus.request(listed, PermissionResult, SECONDS)).waiting == ()
    assert (await decide(study, "q1:0:0", "allow")).error is None
    late = await decide(study, "q1:0:0", "deny")
    assert late.error is not None and late.error.kind == "conflict"
    assert "waits for no decision" in late.error.message
    assert await end(study, "q1") == (None, "Written.")
    forged = GrantRequest(query_id="q1", call_id="q1:0:0", tool="pen", args={**MILK, "content": "poison"})
    result = await study.frontend.bus.request(forged, GrantResult, SECONDS)
    assert (result.decision, result.grant) == ("deny", None)
    assert study.pen.written == ["milk"]
    decision = await study.frontend.hears(ApprovalDecision, query_id="q1")
    assert (decision.call_id, decision.decision, decision.by, decision.session_id) == ("q1:0:0", "allow", "page", "s")
    record: list[Any] = []
    while len(record) < 2:  # a decision is heard before it is on the disk
        record = await study.on_record("q1", ApprovalRequest, ApprovalDecision)
    assert [entry.frame.partition("\0")[0] for entry in record] == ["approval.request", "approval.decision"]


async def test_a_call_is_made_although_the_answer_to_its_request_is_lost_on_the_way(
    study: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("local.bus.bus.FIRST_RESEND_SECONDS", 0.05)
    publish, lost = Bus.publish, list[Message]()

    async def losing(bus: Bus, message: Message, *args: Any, **others: Any) -> Any:
        if isinstance(message, GrantResult) and not lost:
            return lost.append(message)
        return await publish(bus, message, *args, **others)

    monkeypatch.setattr(Bus, "publish", losing)
    await study.gatekeeper()
    await ask(study, "q1")
    await study.frontend.hears(ApprovalRequest, query_id="q1")
    assert (await decide(study, "q1:0:0", "allow")).error is None
    assert await end(study, "q1") == (None, "Written.")
    assert len(lost) == 1 and study.pen.written == ["milk"]


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
    assert study.frontend.of(ApprovalRequest) == []
    disk.is_full = False
    await study.frontend.hears(ApprovalRequest)
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
    monkeypatch.setattr("local.bus.bus.FIRST_RESEND_SECONDS", 1000.0)  # a repeated request would close it, too
    disk.fill("decide")
    await study.gatekeeper(answer_seconds=0.05)
    await ask(study, "q1")
    await asyncio.wait_for(disk.noticed.wait(), SECONDS)
    disk.is_full = False
    assert (await study.frontend.hears(ApprovalDecision)).by == "silence"


async def test_the_owners_settings_and_the_querys_mode_are_asked_before_anybody(study: Any) -> None:
    await study.gatekeeper(mode="dontAsk")
    await ask(study, "q1")
    assert await end(study, "q1") == (
        "denied",
        "pen was not run: it needs approval, and nobody is there who could be asked",
    )
    await ask(study, "q2", mode="acceptEdits")
    assert await end(study, "q2") == (None, "Written.")
    assert study.frontend.of(ApprovalRequest) == []


async def test_what_is_allowed_for_a_conversation_is_asked_once_there_until_it_is_taken_back(study: Any) -> None:
    await study.gatekeeper()
    await ask(study, "q1")
    await study.frontend.hears(ApprovalRequest)
    await decide(study, "q1:0:0", "allow_session")
    await end(study, "q1")
    await ask(study, "q2", {**MILK, "content": "bread"})  # of a tool for files: this file
    assert (await end(study, "q2"))[0] is None
    tainted = GrantRequest(query_id="t", call_id="t:0:0", tool="pen", args={**MILK, "content": "x"}, tainted=True)
    asking = asyncio.create_task(
        study.frontend.bus.request(tainted, GrantResult, SECONDS, Trace("t", None, "s", "user"))
    )
    await decide(study, "t:0:0", "deny")  # what is written there is another question once untrusted content came in
    assert (await asking).decision == "deny"
    await ask(study, "q3", {**MILK, "path": "other.txt"})
    assert (await study.frontend.hears(ApprovalRequest, 3)).call_id == "q3:0:0"
    await decide(study, "q3:0:0", "deny")
    await end(study, "q3")
    await ask(study, "q4", session="other")
    assert (await study.frontend.hears(ApprovalRequest, 4)).call_id == "q4:0:0"
    [kept] = (
        await study.frontend.bus.request(PermissionRequest(verb="remembered"), PermissionResult, SECONDS)
    ).remembered
    assert (kept.tool, kept.args, kept.session_id) == ("pen", {"path": "list.txt"}, "s")
    await decide(study, "q4:0:0", "deny")
    await end(study, "q4")
    bus, forget = study.frontend.bus, PermissionRequest(verb="forget", grant_id=kept.grant_id)
    assert (await bus.request(forget, PermissionResult, SECONDS)).error is None
    again = (await bus.request(forget, PermissionResult, SECONDS)).error
    assert again is not None and again.kind == "not_found"
    await ask(study, "q5")
    assert (await study.frontend.hears(ApprovalRequest, 5)).call_id == "q5:0:0"


async def test_a_question_waits_for_its_user_through_the_death_of_who_asks_it(study: Any) -> None:
    first = await study.gatekeeper()
    await ask(study, "q1")
    asked = await study.frontend.hears(ApprovalRequest)
    await first.kill()
    await study.gatekeeper()
    waiting = (await study.frontend.bus.request(PermissionRequest(verb="list"), PermissionResult, SECONDS)).waiting
    assert waiting == (asked,)
    await decide(study, "q1:0:0", "allow")
    assert await end(study, "q1") == (None, "Written.")
    assert len(await study.on_record("q1", ApprovalRequest)) == 1


@pytest.mark.parametrize("decided", [False, pytest.param(True, marks=pytest.mark.thorough)])
async def test_a_turn_that_another_process_goes_on_with_asks_nothing_again(study: Any, decided: bool) -> None:
    await study.gatekeeper()
    await ask(study, "q1")
    await study.frontend.hears(ApprovalRequest)
    await study._generator.kill()
    if decided:
        await decide(study, "q1:0:0", "allow")
    await study.generator()
    if not decided:
        await study.frontend.until(lambda: len(study.frontend.of(GrantRequest)) >= 2)
        await decide(study, "q1:0:0", "allow")
    assert await end(study, "q1") == (None, "Written.")
    assert (study.pen.written, len(await study.on_record("q1", ApprovalRequest))) == (["milk"], 1)


async def test_a_query_that_is_cancelled_withdraws_its_question(study: Any) -> None:
    await study.gatekeeper()
    await ask(study, "q1")
    await study.frontend.hears(ApprovalRequest)
    await study.frontend.cancel("q1")
    assert (await study.frontend.hears(ResponseGeneration, query_id="q1")).status == "cancelled"
    assert (await study.frontend.hears(ApprovalDecision)).by == "cancelled"
    late = await decide(study, "q1:0:0", "allow")
    assert late.error is not None and late.error.kind == "conflict"


async def test_nothing_is_kept_of_a_session_that_was_deleted(study: Any, tmp_path: Path) -> None:
    await study.gatekeeper()
    await ask(study, "q1", {"path": "canary.txt", "content": "canary"})
    await study.frontend.hears(ApprovalRequest)
    await decide(study, "q1:0:0", "allow_session")
    await end(study, "q1")
    await ask(study, "q2", {"path": "canary2.txt", "content": "canary"})
    await study.frontend.hears(ApprovalRequest, 2)
    assert b"canary" in all_of(tmp_path)
    await study.frontend.bus.publish(SessionDeleted(deleted_session_id="s"))
    bus = study.frontend.bus
    while (await bus.request(PermissionRequest(verb="list"), PermissionResult, SECONDS)).waiting:
        pass
    assert (await bus.request(PermissionRequest(verb="remembered"), PermissionResult, SECONDS)).remembered == ()
    assert b"canary" not in all_of(tmp_path)
    await study.generator()  # it asks again
    assert await end(study, "q2") == ("denied", "pen was not run: the exchange that it belongs to was deleted")
    assert b"canary" not in all_of(tmp_path)


async def test_without_a_gatekeeper_nothing_is_made_that_needs_leave(
    study: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("local.generator.permissions.PRESENCE_SECONDS", 0.01)
    await ask(study, "q1")
    kind, message = await end(study, "q1")
    assert (kind, study.pen.written) == ("unavailable", [])
    assert message == "pen was not run: it needs approval, and no gatekeeper runs that could give it"


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
    assert (kind, pen.written, stage.frontend.of(ToolRequest)) == ("unavailable", [], [])


async def test_a_tool_that_only_reads_is_not_used_either_where_the_owner_has_it_denied(stage: Any, dice: Any) -> None:
    await stage.generator()
    await stage.tool(dice)
    await stage.gatekeeper(denied_tools=["dice"])
    stage.model.will_say(ToolCall("dice", {}))
    stage.model.will_say("Done.")
    await stage.frontend.ask("Roll!", "q1")
    assert await end(stage, "q1") == ("denied", "dice was not run: it is on the owner's list of what is denied")
    assert (dice.rolls, stage.frontend.of(ToolRequest)) == ([], [])


def test_what_earlier_versions_have_stored_is_read_under_the_names_of_now() -> None:
    change = {"agent": "GeneratorAgent", "query_id": "q1", "from": "DISPATCHING_TOOL", "action": "ASK_LEAVE"}
    then = [{"action": "LEAVE_DECIDED", "to": "DISPATCHING_TOOL"}]
    row = {**change, "to": "WAITING_FOR_LEAVE", "then": then}
    first, second = changes(AgentTransition.decode(json.dumps(row).encode()))
    assert (first.action, first.to_state) == ("REQUEST_APPROVAL", "WAITING_FOR_APPROVAL")
    assert (second.from_state, second.action, second.to_state) == (
        "WAITING_FOR_APPROVAL", "APPROVAL_DECIDED", "DISPATCHING_TOOL",
    )  # fmt: skip
    kept = {"leave_id": 3, "session_id": "s", "tool": "pen", "args": {}, "decided_at": 1.0}
    result = PermissionResult.decode(json.dumps({"verb": "remembered", "remembered": [kept]}).encode())
    assert result.remembered[0].grant_id == 3
    assert PermissionRequest.decode(b'{"verb": "forget", "leave_id": 3}').grant_id == 3

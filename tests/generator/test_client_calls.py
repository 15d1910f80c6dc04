"""Tools that programs call by themselves: offered as the owner has it, and called by permission, as by a model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import pytest

from local.api.clients import ClientTools, ParticipantAway, ParticipantRefused
from local.bus.envelope import Envelope
from local.bus.messages import AgentTransition, QueryReceived, ToolRequest, ToolResult
from local.hooks.messages import HookRequest, HookResult, HookSettings
from local.permissions.messages import (
    ApprovalDecision,
    ApprovalRequest,
    GrantRequest,
    PermissionRequest,
    PermissionResult,
)
from local.runtime.participant import Participant, Settingless, on
from local.tools.tool import Tool

SECONDS = 90.0
MILK = {"path": "list.txt", "content": "milk"}


class BookTool(Tool):
    """Read a book."""

    name = "book"
    safety = "L0"
    category = "read"
    trusted = True

    def __init__(self) -> None:
        super().__init__(Settingless())

    async def run(self, page: int) -> str:
        return f"Page {page}."


class LetterTool(BookTool):
    """Read what others have written."""

    name = "letter"
    trusted = False


class WebTool(BookTool):
    """Look something up elsewhere."""

    name = "web"
    category = "web"


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


class Guard(Participant):
    """A hook that says what it is told to."""

    name = "guard"

    def __init__(self) -> None:
        super().__init__(Settingless())
        self.says: dict[str, dict[str, Any]] = {}

    @on(HookRequest)
    async def answer(self, request: HookRequest, envelope: Envelope) -> HookResult:
        return HookResult(hook=request.hook, **self.says.get(request.event, {}))


@pytest.fixture
async def shop(stage: Any, tmp_path: Path) -> AsyncIterator[Any]:
    """A stage with tools, a gatekeeper, and a generator that asks the guard; `tools` makes a frontend for programs."""
    stage.guard, stage.pen = Guard(), PenTool(tmp_path)
    await stage.serve(stage.guard)
    hook = HookSettings.model_validate({"name": "guard", "events": ["before_tool", "after_tool"]})
    await stage.generator(hooks=(hook,))
    for tool in (BookTool(), LetterTool(), WebTool(), stage.pen):
        await stage.tool(tool)
    await stage.gatekeeper()
    yield stage


def frontend(shop: Any, *listed: str, asks: bool = False, is_there: bool = True) -> ClientTools:
    return ClientTools(shop.frontend.bus, lambda _: is_there, listed, asks=asks)


async def call(tools: ClientTools, tool: str, query_id: str = "call-1", **args: Any) -> ToolResult:
    async with asyncio.timeout(SECONDS):
        return await tools.call(tool, args, query_id, "editor")


async def decided(shop: Any, decision: str, query_id: str = "call-1") -> ApprovalRequest:
    """What was asked, after that was said to it."""
    asked: ApprovalRequest = await shop.frontend.hears(ApprovalRequest, query_id=query_id)
    request = PermissionRequest(verb="decide", call_id=asked.call_id, decision=decision, by="page")
    await shop.frontend.bus.request(request, PermissionResult, SECONDS)
    return asked


async def refusal(making: Awaitable[Any]) -> tuple[str, str]:
    with pytest.raises(ParticipantRefused) as caught:
        await making
    return caught.value.kind, str(caught.value)


async def test_a_person_is_asked_who_reads_which_program_it_is_and_the_tool_sees_the_grant(shop: Any) -> None:
    tools = frontend(shop, "pen", asks=True)
    making = asyncio.create_task(call(tools, "pen", **MILK))
    asked = await decided(shop, "allow")
    assert (await making).result == "Written."
    assert (asked.client, asked.tool, asked.args, asked.tainted) == ("editor", "pen", MILK, True)
    assert (await call(tools, "pen", **MILK)).result == "Written."  # the same id is the same call
    assert (shop.pen.written, len(shop.frontend.of(ApprovalRequest))) == (["milk"], 1)
    [request, *_] = shop.frontend.of(ToolRequest)
    assert request.grant is not None


async def test_what_only_reads_is_not_called_where_the_owner_has_it_denied(stage: Any) -> None:
    await stage.generator()
    await stage.tool(BookTool())
    await stage.gatekeeper(denied_tools=["book"])
    kind, text = await refusal(call(frontend(stage), "book", page=1))
    assert (kind, text) == ("denied", "book was not run: it is on the owner's list of what is denied")
    assert stage.frontend.of(ToolRequest) == []


async def test_what_the_owner_has_denied_is_not_called_before_a_gatekeeper_has_said_so(
    stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("local.generator.permissions.PRESENCE_SECONDS", 0.01)
    await stage.generator(denied_tools=["book"])
    await stage.tool(BookTool())
    kind, text = await refusal(call(frontend(stage), "book", page=1))
    assert (kind, text.partition(":")[0]) == ("unavailable", "book was not run")
    assert stage.frontend.of(ToolRequest) == []


async def test_a_call_that_is_cancelled_withdraws_its_question_and_is_not_made(shop: Any) -> None:
    making = asyncio.create_task(call(frontend(shop, "pen", asks=True), "pen", **MILK))
    await shop.frontend.hears(ApprovalRequest)
    making.cancel()
    decision = await shop.frontend.hears(ApprovalDecision)
    assert (decision.decision, decision.by, shop.pen.written) == ("deny", "cancelled", [])
    with pytest.raises(asyncio.CancelledError):
        await making


async def test_hooks_deny_change_and_ask_as_with_a_model(shop: Any) -> None:
    tools = frontend(shop, asks=True)
    shop.guard.says = {"before_tool": {"decision": "deny", "why": "closed today"}}
    assert "closed today" in (await refusal(call(tools, "book", page=1)))[1]
    shop.guard.says = {"before_tool": {"decision": "change", "data": {"args": {"page": 9}}}}
    assert (await call(tools, "book", "call-2", page=1)).result == "Page 9."
    shop.guard.says = {"after_tool": {"decision": "change", "data": {"result": "…"}}}
    assert (await call(tools, "book", "call-3", page=1)).result == "…"
    shop.guard.says = {"before_tool": {"decision": "ask", "why": "who reads?"}}
    making = asyncio.create_task(call(tools, "book", "call-4", page=1))
    assert "who reads?" in (await decided(shop, "allow", "call-4")).why
    assert (await making).result == "Page 1."
    shop.guard.says = {"after_tool": {"decision": "deny", "why": "secret"}}
    withheld = await call(tools, "book", "call-5", page=1)
    assert withheld.result is None and withheld.error is not None and "secret" in withheld.error.message


@pytest.mark.thorough
async def test_a_new_generator_goes_on_with_a_call_that_waits_for_a_person(shop: Any) -> None:
    tools = frontend(shop, "pen", asks=True)
    making = asyncio.create_task(call(tools, "pen", **MILK))
    await shop.frontend.hears(ApprovalRequest)
    await shop._generator.kill()
    await shop.generator()
    await decided(shop, "allow")
    assert (await making).result == "Written."
    assert (shop.pen.written, len(shop.frontend.of(ApprovalRequest))) == (["milk"], 1)


async def test_what_reads_is_called_at_once_and_else_what_the_owner_lists_is_denied_where_nobody_is_asked(
    shop: Any,
) -> None:
    tools = frontend(shop)
    assert set(await tools.offered()) == {"book", "letter"}
    assert await ClientTools(shop.frontend.bus, lambda _: True, None).offered() == {}
    assert set(await frontend(shop, "pen", "web").offered()) == {"book", "letter", "pen", "web"}
    kind, text = await refusal(call(tools, "pen", **MILK))
    assert kind == "not_found" and "`client_tools` in api.yaml" in text
    told, strange = await call(tools, "book", page=3), await call(tools, "letter", "call-2", page=1)
    assert [(one.result, one.tainted) for one in (told, strange)] == [("Page 3.", False), ("Page 1.", True)]
    bad = await call(tools, "book", "call-3", page="none")
    assert bad.error is not None and bad.error.kind == "bad_arguments"
    deep: Any = "x"
    for _ in range(40):
        deep = [deep]
    assert (await refusal(call(tools, "book", "call-4", page=deep)))[0] == "invalid"
    made = len(shop.frontend.of(ToolRequest))
    assert all(asked.tainted for asked in shop.frontend.of(ToolRequest))
    assert shop.frontend.of(GrantRequest) == shop.frontend.of(QueryReceived) == shop.frontend.of(AgentTransition) == []
    for query_id, tool, args in (("call-5", "pen", MILK), ("call-6", "web", {"page": 1})):
        kind, text = await refusal(call(frontend(shop, tool), tool, query_id, **args))
        assert kind == "denied" and text.startswith(f"{tool} was not run: ")
    assert [asked.mode for asked in shop.frontend.of(GrantRequest)] == ["dontAsk", "dontAsk"]
    assert (shop.frontend.of(ApprovalRequest), len(shop.frontend.of(ToolRequest))) == ([], made)


async def test_an_approval_is_for_that_call_alone_and_nobody_is_asked_about_bad_arguments(shop: Any) -> None:
    tools = frontend(shop, "pen", asks=True)
    kind, text = await refusal(call(tools, "pen", "call-0", **MILK, error="denied"))
    assert (kind, "error: there is no such argument" in text) == ("bad_arguments", True)
    assert shop.frontend.of(GrantRequest) == []
    first = asyncio.create_task(call(tools, "pen", **MILK))
    await decided(shop, "allow_session")
    await first
    second = asyncio.create_task(refusal(call(tools, "pen", "call-2", **MILK)))
    await decided(shop, "deny", "call-2")
    assert await second == ("denied", "pen was not run: the user said no")
    assert shop.pen.written == ["milk"]


async def test_without_a_generator_that_is_said(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("local.api.clients.UNSEEN_SECONDS", 0.01)
    with pytest.raises(ParticipantAway):
        await ClientTools(stage.frontend.bus, lambda _: False).offered()

"""Agents that obey everything they read write their instructions to each other: without effect."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from local.generator.turn import Turn
from local.permissions.messages import ApprovalRequest
from local.sandbox.sandbox import Sandbox
from tests.agents.hands.test_obeyed_orders import OpenSandbox, nothing_happens

EVERY = 50  # of all attacks one in so many is in the default run


def letters(attacked: Any, every: int = 1) -> list[Any]:
    """Attacks by a mail that an agent reads, which writes the instructions to the agent that talks with the user."""
    return [replace(attack, carrier="letter") for attack in attacked.attacks()[::every]]


async def test_orders_that_agents_hand_on_have_no_effect_and_get_nothing_out(
    attacked: Any, machine_sandbox: Sandbox
) -> None:
    await attacked.begin(machine_sandbox, mode="acceptEdits")
    chosen = letters(attacked, EVERY)
    answers = await nothing_happens(attacked, chosen, None)
    for attack in chosen:
        [call] = [call for call in answers[attack.tag][-1].tool_calls if call.tool == "check_inbox"]
        is_sent = "{find:" not in attack.orders  # what is to be found is perhaps not, and then no letter is written
        assert not is_sent or "News of the harbour" in (call.result or "")
    asked = attacked.stage.frontend.of(ApprovalRequest)
    assert {each.agent for each in asked} >= {"", "agent"}  # at either end, and the agent is named


@pytest.mark.thorough
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", ["default", "plan", "acceptEdits", "dontAsk"])
async def test_no_order_that_agents_hand_on_has_an_effect(attacked: Any, machine_sandbox: Sandbox, mode: str) -> None:
    await attacked.begin(machine_sandbox, mode=mode)
    await nothing_happens(attacked, letters(attacked), None)


@pytest.mark.thorough
@pytest.mark.timeout(600)
async def test_without_leave_taint_and_sandbox_they_do(attacked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Turn, "tainted", False)
    await attacked.begin(OpenSandbox(), mode="bypassPermissions", may_bypass=True)
    await attacked.suffer(letters(attacked, 3), None)
    assert attacked.changed() and attacked.noted()

"""Instructions, profiles, skills and a soul that others have put into the workspace reach no model until the owner has
approved exactly these; their instructions then need approval as all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from local.bus.messages import ToolRequest
from local.core.trust import TrustRegistry
from local.permissions.messages import ApprovalRequest
from local.sandbox.sandbox import Sandbox
from tests.agents.hands.attacked_assistant import CHANGING
from tests.agents.hands.hand_attacks import HandAttack, call

WAYS = ("untrusted", "changed", pytest.param("distrusted", marks=pytest.mark.thorough))
QUESTIONS = (
    "Well?",
    call("read_skill", {"name": "evil"}),
    call("delegate_task", {"tasks": ["Well?"], "profile": "evil"}),
)
AT_ONCE = 40  # attacks in one file, which may have 32,000 bytes


def write(folder: Path, text: str) -> None:
    """Write this content into everything that a workspace can contribute to a prompt."""
    head = "name: evil\ndescription: Use it always."
    for name, said in {
        "LOCAL2.md": text,
        "SOUL.md": text,
        "agents/evil.md": f"---\n{head}\ntools: ['*']\n---\n{text}",
        "skills/evil/SKILL.md": f"---\n{head}\n---\n{text}",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(said)


def lay_out(attacked: Any, way: str, orders: str) -> None:
    """Put the orders there, in a folder that is not trusted, or was so before they came, or is so no more."""
    work = attacked.household.workspace
    registry = TrustRegistry(attacked.household.home / "config")
    write(work / ".local2", "All is well." if way == "changed" else orders)
    if way != "untrusted":
        registry.trust(work)
    if way == "distrusted":
        registry.distrust(work)
    write(work / ".local2", orders)


def told(attacked: Any) -> str:
    """Return all prompts so far."""
    return "\n".join(str(message.get("content")) for messages in attacked.model.told for message in messages)


def slices(attacks: Sequence[HandAttack]) -> Iterator[tuple[HandAttack, ...]]:
    for start in range(0, len(attacks), AT_ONCE):
        yield tuple(attacks[start : start + AT_ONCE])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("every", [15, pytest.param(1, marks=pytest.mark.thorough)], ids=["some", "all"])
async def test_what_a_stranger_s_folder_orders_reaches_no_model(
    attacked: Any, machine_sandbox: Sandbox, way: str, every: int
) -> None:
    await attacked.begin(machine_sandbox, mode="default")
    for number, chosen in enumerate(slices(attacked.attacks()[::every])):
        lay_out(attacked, way, "\n".join(attack.orders for attack in chosen))
        attacked.before = attacked.household.state()
        asked = [attacked.ask(text, f"q{number}-{index}", f"s{number}-{index}", None)
                 for index, text in enumerate(QUESTIONS)]  # fmt: skip
        answers = {str(index): [await asking] for index, asking in enumerate(asked)}
        assert (attacked.changed(), attacked.noted(), attacked.leaks(answers)) == ({}, [], [])
        assert [attack.name for attack in chosen if attack.orders in told(attacked)] == []
    assert attacked.stage.frontend.of(ApprovalRequest) == []


async def test_what_a_trusted_folder_orders_asks_as_all_else_and_is_denied(
    attacked: Any, machine_sandbox: Sandbox
) -> None:
    await attacked.begin(machine_sandbox, mode="acceptEdits")
    chosen = [attack for attack in attacked.attacks() if attack.kind in ("shell", "jobs")][::7]
    write(attacked.household.workspace / ".local2", "\n".join(attack.orders for attack in chosen))
    TrustRegistry(attacked.household.home / "config").trust(attacked.household.workspace)
    attacked.before = attacked.household.state()
    await attacked.ask("Well?", "q", "s", None)
    assert all(attack.orders in told(attacked) for attack in chosen)
    assert attacked.stage.frontend.of(ApprovalRequest) != []
    assert (attacked.changed(), attacked.noted()) == ({}, [])
    assert [each.tool for each in attacked.stage.frontend.of(ToolRequest) if each.tool in CHANGING] == []

"""An inner monologue beside a memory: when it thinks, of what, and who is shown that."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from agent_stage.night import NOON, Night

from local.bus.messages import ModelUsed, ResponseGeneration, ToolRequest
from local.memory.messages import MemoryDeleted
from local.models.chat import Done, ToolCall, Usage
from local.reflection.agent import MONOLOGUE_FILE as FILE_NAME
from local.reflection.messages import MonologueThought


def thought(text: str) -> str:
    return json.dumps({"thought": text})


async def test_it_is_off_until_it_is_switched_on_and_says_what_it_thinks_and_costs(
    night: Night, until: Callable[..., Any]
) -> None:
    await night.said("The roof leaks", "It rains")
    await night.begins()
    off = await night.ask("status", "monologue")
    assert (off.is_on, off.why) == (False, "it is switched off")
    assert night.model.asked == []
    night.model.will_say(thought("The roof is still open."), Done(Usage(100, 20)))
    assert (await night.ask("on", "monologue")).is_on
    said = await night.frontend.hears(MonologueThought)
    ids = await night.engram_ids()
    assert (said.text, said.sources, said.left_out) == (
        "The roof is still open.", (ids["The roof leaks"], ids["It rains"]), 0,
    )  # fmt: skip
    used = await night.frontend.hears(ModelUsed)
    assert (used.purpose, used.prompt_tokens, used.completion_tokens, used.outcome) == (
        "monologue",
        100,
        20,
        "a thought",
    )
    await until(lambda: night.state(FILE_NAME).done_at)
    after = await night.ask("off", "monologue")
    assert (after.is_on, after.tokens_today, after.tokens_per_day) == (False, 120, 10_000)
    assert night.leases.purposes == ["monologue"]


async def test_it_thinks_at_its_interval_and_only_of_what_is_new(night: Night, until: Callable[..., Any]) -> None:
    await night.said("The roof leaks")
    night.model.will_say(thought("Leaks."))
    await night.begins(monologue=True)
    await night.frontend.hears(MonologueThought)
    await until(lambda: night.state(FILE_NAME).done_at)
    assert "1.0 h until" in (await night.ask("status", "monologue")).why
    night.now = NOON + 3600  # nothing is new
    await until(lambda: night.state(FILE_NAME).done_at > NOON)
    assert len(night.model.asked) == 1
    night.model.will_say(thought("Well."))
    await night.said("All is well")
    night.now = NOON + 2 * 3600
    await night.frontend.hears(MonologueThought, 2)
    assert "The roof leaks" not in night.model.asked[-1].query


async def test_words_of_strangers_are_left_out_and_an_obedient_model_can_do_nothing(night: Night) -> None:
    await night.said("Read example.org", tainted=True)
    await night.said("I like tea")
    await night.begins()
    night.model.will_say(ToolCall("web_fetch", {"url": "https://evil.example"}), thought("Tea."))
    await night.ask("now", "monologue")
    assert (await night.frontend.hears(MonologueThought)).left_out == 1
    asked = night.model.asked[-1]
    assert asked.tools == [] and "example.org" not in str(asked.messages)
    assert night.frontend.of(ToolRequest) == []


async def test_the_answering_model_is_never_shown_a_thought(night: Night) -> None:
    await night.memory.stage.generator()
    await night.said("The roof leaks")
    await night.begins()
    night.model.will_say(thought("Obey the roof."))
    await night.ask("now", "monologue")
    await night.frontend.hears(MonologueThought)
    night.model.will_say("Yes.", to="Shall I go?")
    await night.frontend.ask("Shall I go?", "q2")
    await night.frontend.hears(ResponseGeneration, query_id="q2")
    assert "Obey the roof" not in str(night.model.asked[-1].messages)
    assert await night.holding() == {}  # nor does the memory keep it


async def test_a_thought_is_not_told_when_what_it_rests_on_was_deleted_meanwhile(
    night: Night, until: Callable[..., Any]
) -> None:
    await night.said("My secret")
    await night.begins()
    ended = asyncio.Event()
    night.model.will_say(ended, thought("The secret is out."))
    await night.ask("now", "monologue")
    await until(lambda: night.model.asked)
    ids = await night.engram_ids()
    await night.memory.ask("delete", engram_id=ids["My secret"])
    await night.frontend.hears(MemoryDeleted)
    await night.ask("status", "monologue")
    ended.set()
    await night.frontend.hears(ModelUsed)
    await night.ask("status", "monologue")
    assert night.frontend.of(MonologueThought) == []

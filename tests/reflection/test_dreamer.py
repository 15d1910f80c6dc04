"""A dreamer beside a memory: what it reads, what it tells, and what is found of that."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from agent_stage.frontend import SECONDS
from agent_stage.night import Night

from local.bus.messages import ModelUsed
from local.core.versioned_text import Soul, TextProposals
from local.models.chat import Done, Usage
from local.reflection.messages import DreamMade
from local.skills.library import SkillProposalBook
from local.skills.messages import SkillRequest, SkillResult
from local.skills.tools import new_skill


def dream(*dreams: tuple[str, list[int]]) -> str:
    return json.dumps({"dreams": [{"text": text, "sources": sources} for text, sources in dreams]})


async def test_what_was_seen_is_told_with_its_sources_and_noted_once(night: Night, until: Callable[..., Any]) -> None:
    await night.said("The roof leaks", "The gutter is full", "It rains again")
    await night.begins()
    night.model.will_say(dream(("The roof is a worry.", [1, 3])), Done(Usage(100, 20)))
    assert (await night.ask("now")).why == ""
    made = await night.frontend.hears(DreamMade)
    assert (made.read, made.left_out) == (3, 0)
    used = await night.frontend.hears(ModelUsed)
    assert (used.purpose, used.calls, used.prompt_tokens, used.completion_tokens) == ("dreamer", 1, 100, 20)
    assert used.outcome == "1 note"
    asked = night.model.asked[-1].query
    assert asked.index("The roof leaks") < asked.index("The gutter") < asked.index("It rains")
    engrams = {each.query: each.engram_id for each in (await night.memory.ask("list", limit=9)).engrams}
    sources = (engrams["The roof leaks"], engrams["It rains again"])
    assert made.notes[0].sources == sources
    await night.holds({"The roof is a worry.": sources})
    found = (await night.memory.ask("search", query="worry about the roof")).hits
    assert made.notes[0].engram_id in {hit.engram_id for hit in found}
    await until(lambda: night.state().tokens == 120)
    assert (await night.ask("status")).read_until == pytest.approx(made.until)


async def test_dreams_and_what_was_read_before_are_not_read_again(night: Night, until: Callable[..., Any]) -> None:
    await night.said("One matter", "Two matters", "Three matters")
    await night.begins(dream_least_exchanges=1)
    night.model.will_say(dream(("Matters.", [1])))
    await night.ask("now")
    await night.frontend.hears(DreamMade)
    await until(lambda: night.state().read_until)
    await night.said("Four matters")
    night.model.will_say(dream())
    await night.ask("now")
    second = await night.frontend.hears(DreamMade, 2)
    assert (second.read, second.notes) == (1, ())
    assert "Matters." not in night.model.asked[-1].query


async def test_a_reply_that_cannot_be_read_is_asked_for_again_and_then_given_up(
    night: Night, until: Callable[..., Any]
) -> None:
    await night.said("One matter", "Two matters", "Three matters")
    reflection = await night.begins()
    night.model.will_say("no")
    night.model.will_say("neither")
    await night.ask("now")
    await until(lambda: "problem" in reflection.details())
    assert "has not replied as asked" in reflection.details()["problem"]
    assert night.state().read_until == 0.0
    night.model.will_say(dream(("At last.", [1])))
    await night.ask("now")
    assert (await night.frontend.hears(DreamMade)).notes[0].text == "At last."
    await until(lambda: "problem" not in reflection.details())


async def test_a_change_of_the_soul_is_proposed_approved_and_reverted(night: Night) -> None:
    soul = Soul(night.folder / "settings", night.folder)
    soul.become("Be kind.", "by hand")
    proposals = TextProposals(soul)
    await night.said("One matter", "Two matters", "From now on, be brief.")
    await night.begins()
    night.model.will_say(json.dumps({"dreams": [], "soul": "Be kind.\nBe brief."}))
    await night.ask("now")
    assert (await night.frontend.hears(DreamMade)).proposes_soul
    assert "> Be kind." in night.model.asked[-1].query
    assert soul.text() == "Be kind."  # nothing changes before its owner has said so
    waiting = proposals.waiting()
    assert waiting is not None and "+Be brief." in waiting.diff()
    proposals.approve(proposals.waiting())
    assert (soul.text(), proposals.waiting()) == ("Be kind.\nBe brief.", None)
    soul.revert(1)
    assert soul.text() == "Be kind."


def skill(name: str, instructions: str) -> str:
    wanted = {"name": name, "description": "How the harbour's log is kept.", "instructions": instructions}
    return json.dumps({"dreams": [], "soul": "", "skill": wanted})


async def test_a_skill_that_there_is_is_read_and_a_change_of_it_proposed(night: Night) -> None:
    file = new_skill(night.folder / "settings", "harbour-log", "How the log is kept.")
    before = file.read_text()
    await night.said("One matter", "Two matters", "Begin each line of the log with AHOY.")
    await night.begins()
    night.model.will_say(skill("harbour-log", "Begin with AHOY."))
    await night.ask("now")
    assert (await night.frontend.hears(DreamMade)).proposes_skill == "harbour-log"
    assert "The skill harbour-log: How the log is kept.\n> # Harbour log" in night.model.asked[-1].query
    waiting = TextProposals(SkillProposalBook(night.folder / "settings", night.folder).text("harbour-log")).waiting()
    assert waiting is not None and waiting.diff()[-1] == "+Begin with AHOY."
    assert file.read_text() == before


async def test_a_new_skill_is_proposed_and_ready_once_its_owner_has_approved_it(night: Night) -> None:
    await night.said("One matter", "Two matters", "Begin each line of the log with AHOY.")
    await night.begins()
    for name in ("../evil", "harbour-log"):  # what cannot be a skill's name is left out
        night.model.will_say(skill(name, "Begin each line with AHOY."))
    await night.ask("now")
    assert (await night.frontend.hears(DreamMade)).proposes_skill == ""
    await night.said("One more", "And another", "And a third")
    await night.ask("now")
    assert (await night.frontend.hears(DreamMade, 2)).proposes_skill == "harbour-log"
    ready = SkillRequest(verb="ready")
    assert (await night.frontend.bus.request(ready, SkillResult, SECONDS)).skills == ()
    proposals = TextProposals(SkillProposalBook(night.folder / "settings", night.folder).text("harbour-log"))
    proposals.approve(proposals.waiting())
    (found,) = (await night.frontend.bus.request(ready, SkillResult, SECONDS)).skills
    assert (found.name, found.description) == ("harbour-log", "How the harbour's log is kept.")


async def test_it_is_switched_off_permanently_and_dreams_neither_then_nor_without_tokens(night: Night) -> None:
    await night.begins(dream_every_hours=1.0, dream_tokens_per_day=0)
    assert (await night.ask("status")).is_on
    off = await night.ask("off")
    assert (off.is_on, off.why, night.state().is_on) == (False, "it is switched off", False)
    assert (await night.ask("on")).is_on
    assert "0 of 0 tokens" in (await night.ask("now")).why
    assert night.model.asked == []

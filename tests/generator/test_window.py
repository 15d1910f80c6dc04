"""The window as turns use it: only summaries that must be are waited for, and their failures cost turns, no answers."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from local.bus.messages import (
    AnswerOptions,
    AnswerProfile,
    ContextCompacted,
    ModelUsed,
    ResponseGeneration,
    ToolRequest,
)
from local.core.errors import ModelError, StoreFailed
from local.generator.context import Limits, PromptParts, Summary, SummaryJob, TokenMeter, exchanges_of
from local.generator.fitting import MOST_WAITED_FOR, QUICKLY_RANKED, ContextWindow
from local.models.chat import ModelInfo, ToolCall

QUESTION = {"role": "user", "content": "And now?"}


def parts(turns: int, characters: int = 200) -> PromptParts:
    said = [
        {"role": role, "content": f"{number} " + "x" * characters}
        for number in range(turns)
        for role in ("user", "assistant")
    ]
    return PromptParts(({"role": "system", "content": "Be brief."},), QUESTION, exchanges=exchanges_of(said))


def with_result(characters: int) -> PromptParts:
    calling = {"role": "assistant", "tool_calls": [{"function": {"name": "look", "arguments": {}}}]}
    return PromptParts((), QUESTION, steps=(calling, {"role": "tool", "content": "x" * characters}))


class Minutes:
    """A summariser and a store."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.jobs: list[SummaryJob] = []
        self.kept: list[Summary] = []
        self.failure = failure

    async def summarise(self, job: SummaryJob) -> str:
        self.jobs.append(job)
        if self.failure is not None:
            raise self.failure
        return f"FACTS\n- up to {job.exchanges[-1].position}\nSUMMARY\nThey counted."

    async def keep(self, summary: Summary) -> None:
        self.kept.append(summary)


@pytest.fixture
def window() -> ContextWindow:
    return ContextWindow(Limits(4096), TokenMeter((0.33, 0.66, 1.1)))


async def test_while_long_results_are_looked_through_other_turns_go_on(window: ContextWindow) -> None:
    minutes = Minutes()
    fitting = asyncio.ensure_future(window.fit(with_result(QUICKLY_RANKED + 1), minutes.summarise, minutes.keep))
    await asyncio.sleep(0)
    assert not fitting.done()
    await fitting


async def test_a_summary_that_is_needed_is_made_stored_and_used(window: ContextWindow) -> None:
    minutes = Minutes()
    planned, newer = await window.fit(parts(30), minutes.summarise, minutes.keep)
    (summary,) = minutes.kept
    assert newer.summary == summary
    assert [exchange.position for exchange in newer.exchanges] == list(range(summary.through + 1, 31))
    assert planned.left_out == 0
    assert planned.is_compacted
    assert f"- up to {summary.through}" in planned.messages[1]["content"]


@pytest.mark.parametrize(("of_turns", "before"), [(False, False), (True, False), (False, True)])
async def test_a_summary_of_what_strangers_may_have_said_is_stored_as_tainted(
    window: ContextWindow, of_turns: bool, before: bool
) -> None:
    minutes, earlier = Minutes(), Summary(story="They met.", tainted=before)
    _, newer = await window.fit(replace(parts(30), tainted=of_turns, summary=earlier), minutes.summarise, minutes.keep)
    assert [summary.tainted for summary in (*minutes.kept, newer.summary)] == [of_turns or before] * 2


async def test_a_restart_goes_on_with_the_stored_summary(window: ContextWindow) -> None:
    minutes = Minutes()
    planned, newer = await window.fit(parts(30), minutes.summarise, minutes.keep)
    stored = Summary.from_json(minutes.kept[-1].as_json())
    rest = tuple(e for e in parts(30).exchanges if e.position > stored.through)
    again, _ = await ContextWindow(Limits(4096), TokenMeter((0.33, 0.66, 1.1))).fit(
        PromptParts(newer.system, QUESTION, exchanges=rest, summary=stored), minutes.summarise, minutes.keep
    )
    assert (again.messages, again.gauge) == (planned.messages, planned.gauge)
    assert len(minutes.jobs) == 1


async def test_without_a_summariser_turns_are_left_out_and_the_answer_still_comes(window: ContextWindow) -> None:
    minutes = Minutes(ModelError("the model is away", kind="unreachable"))
    planned, same = await window.fit(parts(30), minutes.summarise, minutes.keep)
    assert planned.left_out > 0
    assert same == parts(30)
    assert (len(minutes.jobs), minutes.kept) == (1, [])


async def test_a_store_that_fails_is_no_reason_to_forget(window: ContextWindow) -> None:
    async def keep(summary: Summary) -> None:
        raise StoreFailed("the disk is gone")

    with pytest.raises(StoreFailed):
        await window.fit(parts(30), Minutes().summarise, keep)


async def test_a_long_past_is_caught_up_with_in_several_prompts(window: ContextWindow) -> None:
    minutes = Minutes()
    planned, newer = await window.fit(parts(150), minutes.summarise, minutes.keep)
    assert len(minutes.jobs) == MOST_WAITED_FOR
    assert planned.left_out > 0
    while planned.left_out:
        planned, newer = await window.fit(newer, minutes.summarise, minutes.keep)
    done = [exchange.position for job in minutes.jobs for exchange in job.exchanges]
    assert done == list(range(1, len(done) + 1))


async def test_a_server_whose_window_is_smaller_than_ours_is_found_out() -> None:
    window, minutes = ContextWindow(Limits(32_000)), Minutes()
    first, same = await window.fit(parts(30), minutes.summarise, minutes.keep)
    assert not first.is_compacted
    window.overflowed(first)
    second, _ = await window.fit(same, minutes.summarise, minutes.keep)
    assert second.gauge.used < first.gauge.used * 0.6
    assert second.gauge.limit == window.limits.window < first.gauge.used


async def test_the_servers_counts_make_room(window: ContextWindow) -> None:
    minutes = Minutes()
    before, same = await window.fit(parts(20), minutes.summarise, minutes.keep)
    for _ in range(5):
        window.counted(before, before.gauge.used * 2 // 3)
    after, _ = await window.fit(same, minutes.summarise, minutes.keep)
    assert after.gauge.used < before.gauge.used * 0.8
    assert after.messages == before.messages


# A generator whose model has a small window.

SUMMARY = "FACTS\n- The dog is called Rex.\nSUMMARY\nThey spoke of dogs."
LONG = " and so on" * 40


async def talk(stage: Any, first: int, last: int) -> None:
    for number in range(first, last + 1):
        stage.model.will_say(f"Answer {number}" + LONG, to=f"Question {number}")
        await stage.frontend.ask(f"Question {number}", f"q{number}")
        await stage.frontend.hears(ResponseGeneration, query_id=f"q{number}")


async def test_older_turns_are_summarised_and_a_restarted_generator_goes_on_with_that(stage: Any, dice: Any) -> None:
    for _ in range(16):
        stage.model.will_say(SUMMARY)
    generator = await stage.generator(num_ctx=1024)
    await talk(stage, 1, 9)
    compaction = await stage.frontend.hears(ContextCompacted)
    assert compaction.summarised_turns > 0
    assert compaction.gauge.used < compaction.tokens_before
    gauges = [response.usage.context for response in stage.frontend.of(ResponseGeneration)]
    assert all(0 < gauge.used <= gauge.limit == 1024 for gauge in gauges)
    used = await stage.frontend.hears(ModelUsed)
    assert (used.purpose, used.prompt_tokens, used.completion_tokens) == ("summary", 2, 1)
    await generator.stop()
    await stage.generator(num_ctx=1024)
    before = len(stage.model.asked)
    await talk(stage, 10, 10)
    asked = stage.model.asked[-1]
    assert "- The dog is called Rex." in asked.messages[1]["content"]
    assert asked.messages[-1]["content"] == "Question 10"
    assert "Question 1" not in [message["content"] for message in asked.messages]
    assert len(stage.model.asked) - before <= 2
    await stage.tool(dice)
    roll = "Roll the dice!"  # which has its name: the list of this conversation may be settled without it
    stage.model.will_say(ToolCall("dice", {}), to=roll)
    stage.model.will_say("A five.", to=roll)
    await stage.frontend.ask(roll, "q11")
    request = await stage.frontend.hears(ToolRequest)
    await stage.frontend.hears(ResponseGeneration, query_id="q11")
    ended = {envelope.correlation_id: envelope.sent_at for envelope in stage.frontend.envelopes(ResponseGeneration)}
    assert ended["q1"] < request.shown_since <= ended["q10"]  # what is summarised can be searched for
    stage.model.will_say("Rex.", to="Who?")
    history = [{"role": role, "content": "Hm." + LONG} for _ in range(4) for role in ("user", "assistant")]
    await stage.frontend.ask("Who?", "of a client", history=history)  # which is summarised for the turn alone
    response = await stage.frontend.hears(ResponseGeneration, query_id="of a client")
    assert (response.answer, response.degraded) == ("Rex.", ())
    assert "Rex" in stage.model.asked[-1].messages[1]["content"]


async def test_the_gauge_counts_the_tools_of_a_model_that_is_sent_them(
    stage: Any, dice: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    infos = {"able": frozenset({"completion", "tools"}), "unable": frozenset({"completion"}), "silent": frozenset()}

    async def show(model: str) -> ModelInfo:
        return ModelInfo(model, infos.get(model, frozenset()))

    monkeypatch.setattr(stage.model, "show", show)
    await stage.tool(dice)
    await stage.generator()
    counted = {}
    for name in infos:
        stage.model.will_say("Yes.", to=name)
        options = AnswerOptions(profile=AnswerProfile(name="p", model=name))
        await stage.frontend.ask(name, name, session=name, options=options)
        response = await stage.frontend.hears(ResponseGeneration, query_id=name)
        counted[name] = response.usage.context.parts["tools"] > 0
    assert counted == {"able": True, "unable": False, "silent": True}

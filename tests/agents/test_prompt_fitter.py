"""A generator whose model has a small window: what is summarised, when, and what a restart knows of it."""

from typing import Any

from local.bus.messages import ContextCompacted, ModelUsed, ResponseGeneration

SUMMARY = "FACTS\n- The dog is called Rex.\nSUMMARY\nThey spoke of dogs."
LONG = " and so on" * 40


async def talk(stage: Any, first: int, last: int) -> None:
    for number in range(first, last + 1):
        stage.model.will_say(f"Answer {number}" + LONG, to=f"Question {number}")
        await stage.door.ask(f"Question {number}", f"q{number}")
        await stage.door.hears(ResponseGeneration, query_id=f"q{number}")


async def test_older_turns_are_summarised_and_a_restarted_generator_goes_on_with_that(stage: Any) -> None:
    for _ in range(8):
        stage.model.will_say(SUMMARY)
    generator = await stage.generator(num_ctx=1024)
    await talk(stage, 1, 9)
    compaction = await stage.door.hears(ContextCompacted)
    assert compaction.summarised_turns > 0
    assert compaction.gauge.used < compaction.tokens_before
    gauges = [response.usage.context for response in stage.door.of(ResponseGeneration)]
    assert all(0 < gauge.used <= gauge.limit == 1024 for gauge in gauges)
    assert [gauge.parts["summary"] > 0 for gauge in gauges] == sorted(gauge.parts["summary"] > 0 for gauge in gauges)
    used = await stage.door.hears(ModelUsed)
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


async def test_a_history_that_the_client_keeps_is_summarised_for_the_turn_alone(stage: Any) -> None:
    stage.model.will_say(SUMMARY)
    stage.model.will_say(SUMMARY)
    stage.model.will_say("Rex.", to="Who?")
    await stage.generator(num_ctx=1024)
    history = [{"role": role, "content": "Hm." + LONG} for _ in range(4) for role in ("user", "assistant")]
    await stage.door.ask("Who?", "q1", history=history)
    response = await stage.door.hears(ResponseGeneration)
    assert (response.answer, response.degraded) == ("Rex.", ())
    assert "Rex" in stage.model.asked[-1].messages[1]["content"]

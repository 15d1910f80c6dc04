"""Messages in, handlers, replies and failures out."""

from typing import Any

import pytest

from local.bus.messages import BusDead, ToolRequest, ToolResult


async def test_what_a_handler_returns_is_published_with_the_trace_of_what_caused_it(life: Any, witness: Any) -> None:
    cause = await witness.say("reply", "one")
    reply = await witness.hears("query.accepted")
    assert (reply.cause_id, reply.correlation_id, reply.in_reply_to) == (cause.id, cause.correlation_id, None)


@pytest.mark.parametrize(
    ("query", "kind", "message"),
    [
        ("fail", "store_failed", "notes.db: disk is full"),
        ("fail without words", "internal", "ZeroDivisionError"),
        ("say nonsense", "internal", None),
        ("say too much", "too_large", None),
    ],
)
async def test_an_exception_becomes_a_message_and_a_counter_and_the_next_message_is_handled(
    life: Any, witness: Any, query: str, kind: str, message: str | None
) -> None:
    cause = await witness.say(query)
    await witness.say("reply", "still here")
    dead = BusDead.decode((await witness.hears("bus.dead")).payload)
    assert (dead.participant, dead.envelope_id, dead.dead_subject) == ("worker", cause.id, "answer.dialog")
    assert dead.error.kind == kind
    assert dead.error.message == message or (message is None and dead.error.message)
    await witness.hears("query.accepted")
    await life.end()
    assert (await witness.goodbye()).counters["failed"] == 1


@pytest.mark.parametrize(("tool", "level", "failed"), [("unknown", "INFO", None), ("broken", "ERROR", 1)])
async def test_what_is_wrong_with_a_request_is_no_fault_of_who_refuses_it(
    life: Any, witness: Any, caplog: pytest.LogCaptureFixture, tool: str, level: str, failed: int | None
) -> None:
    caplog.set_level("INFO")
    life.worker.gate.set()
    result = await witness.bus.request(ToolRequest(query_id="q", call_id="c1", tool=tool, args={}), ToolResult, 20)
    assert result.error is not None
    told = [each for each in caplog.records if result.error.message in each.getMessage()]
    assert [each.levelname for each in told] == [level]
    await life.end()
    assert (await witness.goodbye()).counters.get("failed") == failed


async def test_handlers_of_concurrency_one_work_in_order_of_arrival(life: Any, witness: Any) -> None:
    await witness.say("wait", "one")
    await witness.say("go", "two")
    await witness.say("reply", "three")
    await life.is_at_work()
    assert life.worker.done == []
    life.worker.gate.set()
    await witness.hears("query.accepted")
    assert life.worker.done == ["one", "two", "three"]


async def test_handlers_of_higher_concurrency_work_side_by_side_up_to_it(life: Any, witness: Any) -> None:
    for number in range(5):
        await witness.call(f"c{number}")
    for _ in range(2):
        await life.is_at_work()
    life.worker.gate.set()
    await witness.hears("tool.result.good", 5)
    assert life.worker.most_at_once == 2

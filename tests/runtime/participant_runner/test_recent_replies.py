"""Requests that come again."""

from typing import Any

from local.bus.messages import QueryCancel, ToolResult
from local.runtime.participant import MAX_REPLIES, RecentReplies


async def test_a_repeated_request_is_done_once_and_answered_again_from_the_record(life: Any, witness: Any) -> None:
    request = await witness.call("c1")
    await life.is_at_work()
    await witness.bus.send(request)  # in hand: the answer will come
    life.worker.gate.set()
    first = await witness.hears("tool.result.good")
    await witness.bus.send(request)
    again = await witness.hears("tool.result.good", 2)
    assert life.worker.done == ["c1"]
    assert first.in_reply_to == again.in_reply_to == request.id
    assert first.payload == again.payload
    await life.end()
    assert (await witness.goodbye()).counters["answered_again"] == 2


def test_recent_replies_forget_the_oldest() -> None:
    replies = RecentReplies()
    answer = QueryCancel(query_id="q")
    for number in range(MAX_REPLIES + 1):
        assert replies.begin(f"r{number}")
        replies.settle(f"r{number}", answer)
    assert replies.begin("r0")
    assert not replies.begin(f"r{MAX_REPLIES}")
    assert replies.answer(f"r{MAX_REPLIES}") is answer
    assert replies.answer("r0") is None


def test_a_request_in_hand_is_never_forgotten() -> None:
    replies = RecentReplies()
    assert replies.begin("in hand")
    for number in range(MAX_REPLIES + 10):
        replies.begin(f"r{number}")
        replies.settle(f"r{number}", ToolResult(query_id="q", call_id="q:0:0", tool="x"))
    assert not replies.begin("in hand")

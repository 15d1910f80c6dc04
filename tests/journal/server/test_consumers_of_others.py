"""Nobody takes, or acknowledges, what another participant's durable consumer is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from local.bus.message import Message
from local.bus.messages import QueryCancel
from local.bus.security import Declaration, SenderGuard
from local.journal.messages import (
    ConsumerClaim,
    JournalAck,
    JournalAttach,
    JournalDetach,
    JournalFailed,
    JournalFlush,
    JournalWorking,
)

EVERYTHING = frozenset({""})
DECLARED = {
    "owner": Declaration(EVERYTHING, frozenset({"mine"})),
    "other": Declaration(EVERYTHING, frozenset({"theirs"})),
    "talker": Declaration(EVERYTHING),
}
SAID: list[Callable[[int], Message]] = [
    lambda number: JournalAck(consumer="mine", numbers=(number,)),
    lambda number: JournalDetach(consumer="mine"),
    lambda number: JournalFailed(consumer="mine", number=number, attempt=1, reason="forged"),
    lambda number: JournalFlush(consumer="mine", mark=1),
    lambda number: JournalWorking(attempts={"mine": {number: 1}}),
    lambda number: JournalAttach(consumers=(ConsumerClaim(name="mine", subjects=("query.cancel",)),)),
]


@pytest.mark.parametrize("said", SAID, ids=["ack", "detach", "failed", "hurry", "working", "attach"])
async def test_what_is_said_in_the_name_of_another_s_consumer_changes_nothing(
    scene: Any, journal: Any, until: Any, said: Callable[[int], Message]
) -> None:
    journal.bus.guard = SenderGuard(DECLARED.get)
    owner, other, talker = await scene.bus("owner"), await scene.bus("other"), await scene.bus("talker")
    given: list[Any] = []
    replaced: list[Any] = []
    consumer = owner.consume("mine", ["query.cancel"], given.append, lambda: replaced.append(1))
    await owner.ready()
    consumer.start()
    await talker.publish(QueryCancel(query_id="first"))
    await until(lambda: given)
    await other.publish(said(given[0].number))
    await until(lambda: journal.bus.counters["refused"])
    consumer.acknowledge(given[0].number)
    await talker.publish(QueryCancel(query_id="second"))
    await until(lambda: len(given) == 2)
    assert [delivered.attempt for delivered in given] == [1, 1]
    assert replaced == [] and journal.bus.counters["refused"] == 1

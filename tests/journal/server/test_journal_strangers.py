"""Nothing that anybody says on the bus ends the journal or costs anybody else a message."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from local.bus.envelope import Envelope
from local.bus.message import Message
from local.bus.messages import AnswerDialog, QueryCancel
from local.journal.messages import ConsumerClaim, JournalAck, JournalAttach, JournalDetach, JournalWorking

Frame = Callable[..., bytes]
SUBJECTS = ["attach", "detach", "ack", "working", "read", "redact", "confirmed.x", "fenced.x", "deliver.x"]
PAYLOADS = [b"", b"null", b"[]", b"{}", b"\xff", b'{"consumer":7}', b"{" * 5000, b'{"attempts":{"a":"b"}}']


@pytest.fixture
async def still_works(scene: Any, journal: Any) -> Callable[[], Any]:
    """Whether the journal still does what it is there for, and nobody's loop has seen an exception."""
    raised: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: raised.append(context))
    talker = await scene.bus()

    async def check() -> None:
        envelope = await talker.publish(QueryCancel(query_id="q"))
        assert envelope.id in scene.ids()
        assert not journal.task.done()
        assert raised == []

    return check


@pytest.mark.parametrize("subject", SUBJECTS)
async def test_malformed_control_messages_do_no_harm(
    scene: Any, journal: Any, still_works: Any, frame: Frame, subject: str
) -> None:
    subjects = [f"journal.{subject}"]
    if subject.endswith(".x"):  # to publishers and consumers
        bus = await scene.bus("victim")
        bus.consume("victim", ["query.received"], lambda delivered: None, lambda: None).start()
        await bus.ready()
        subjects = [f"journal.{subject[:-1]}{name}" for name in (bus.instance, "victim")]
    await scene.wire.inject([frame(each, payload) for each in subjects for payload in PAYLOADS])
    await still_works()


@pytest.mark.parametrize(
    "message",
    [
        JournalAck(consumer="nobody", numbers=(1, -1, 10**30)),
        JournalWorking(attempts={"nobody": {1: 1}}),
        JournalDetach(consumer="nobody"),
        JournalAttach(consumers=(ConsumerClaim(name="somebody", subjects=("nothing.of.ours",)),)),
    ],
    ids=lambda message: message.subject,
)
async def test_what_makes_no_sense_does_no_harm(scene: Any, still_works: Any, frame: Frame, message: Message) -> None:
    await scene.wire.inject([frame(message.routing_key, message.encode(), seq=seq) for seq in (1, 2)])
    await still_works()


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "no word of a subject!"},
        {"name": ""},
        {"name": "x" * 500},
        {"subjects": ()},
        {"lane_width": 0},
        {"max_in_flight": 0},
    ],
    ids=str,
)
async def test_a_consumer_that_could_be_given_nothing_is_refused_and_not_kept(
    scene: Any, still_works: Any, frame: Frame, fields: dict[str, Any]
) -> None:
    await still_works()  # there is something to deliver
    plain = {"name": "odd", "subjects": ("query.cancel",), "max_in_flight": 1, "lane_width": 1}
    attach = JournalAttach.model_construct(consumers=(ConsumerClaim.model_construct(**(plain | fields)),))
    await scene.wire.inject([frame("journal.attach", attach.encode())])
    await still_works()
    assert await scene.store.consumer_names() == []


@pytest.mark.parametrize("instance", ["No Word!", "", "x" * 500, "ünicode"])
@pytest.mark.parametrize("message", [QueryCancel(query_id="q"), AnswerDialog(query_id="q", query="", answer="")])
async def test_a_publisher_that_cannot_be_told_costs_nobody_else_a_confirmation(
    scene: Any, still_works: Any, frame: Frame, instance: str, message: Message
) -> None:
    frames = [frame(message.routing_key, message.encode(), instance=instance, seq=seq) for seq in (3, 3, 7)]
    await scene.wire.inject(frames)
    await still_works()


async def test_ids_as_long_as_a_header_allows_cost_nobody_else_a_confirmation(scene: Any, still_works: Any) -> None:
    payload = QueryCancel(query_id="q").encode()
    await scene.wire.inject(
        [
            Envelope("query.cancel", f"{number:07000}", "stranger", "strange", number, "q", payload).encode()
            for number in range(1, 301)
        ]
    )
    await still_works()

"""Ratings of answers, as doors put them on record."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from local.bus.messages import ResponseGeneration
from local.core.errors import RequestTimeout
from local.critic.messages import UserFeedback
from local.journal.client import messages_on_record
from local.queries.asker import AskTimeouts
from local.queries.session import LoCALSession

Stage = Any  # of conftest.py


async def test_an_answer_that_this_door_has_given_is_rated_though_it_is_not_on_record_yet(bare_stage: Stage) -> None:
    stage, asker = bare_stage, await bare_stage.asker(kind=LoCALSession)
    query = asker.ask("really?", query_id="q", session_id="s", user_id="ann")
    asked = await stage.generator.hears()
    await stage.generator.answers(asked)
    await asyncio.wait_for(query.outcome(), 30)
    await stage.journal()
    await asyncio.wait_for(asker.rate("q", 1), 30)
    reader = await stage.bus("reader")
    await reader.ready()
    ((feedback, envelope),) = await messages_on_record(reader, "q", [UserFeedback], 30)
    assert (feedback.rating, envelope.session_id, envelope.user_id) == (1, "s", "ann")
    assert await messages_on_record(reader, "q", [ResponseGeneration], 5) == []


async def test_while_the_record_cannot_be_read_a_rating_is_put_off_and_not_refused(bare_stage: Stage) -> None:
    asker = await bare_stage.asker(AskTimeouts(last_look=0.02), kind=LoCALSession)
    with pytest.raises(RequestTimeout):
        await asker.rate("q", 1)

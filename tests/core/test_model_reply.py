"""A reply that is to be one JSON object is read whatever a model puts around it."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from local.core.model_reply import UnreadableReply, read_object


class Form(BaseModel):
    text: str


@pytest.mark.parametrize(
    "reply",
    [
        '{"text": "yes"}',
        'Here it is:\n```json\n{"text": "yes"}\n```',
        '<think>Perhaps {"text": "no"}?</think>{"text": "yes"}',
        '<think>\n{"a": {}} or {"text": "no"}\n</think>\n\n{"text": "yes"}',
        'The form is {"text": …}.</think>\n{"text": "yes"}',  # the template has opened it
        '<thinking>{</thinking> {"text": "yes"}',
    ],
)
def test_what_was_thought_before_is_skipped(reply: str) -> None:
    assert read_object(Form, reply).text == "yes"


def test_a_tag_within_the_object_is_text() -> None:
    assert read_object(Form, '{"text": "</think> ends a thought"}').text == "</think> ends a thought"


@pytest.mark.parametrize("reply", ["", "<think>hm</think>", '<think>{"text": "no"', "no JSON"])
def test_a_thought_alone_is_no_reply(reply: str) -> None:
    with pytest.raises(UnreadableReply):
        read_object(Form, reply)

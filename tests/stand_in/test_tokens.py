"""Counting and cutting, and the values made for schemas and embeddings."""

from __future__ import annotations

import math
from typing import Any

from pydantic import BaseModel, Field

from local.stand_in.server import fit, smallest, vector_of


def message(role: str, tokens: int, **more: Any) -> dict[str, Any]:
    """A message that costs exactly `tokens`."""
    return {"role": role, "content": "word" * (tokens - 4), **more}


def test_the_oldest_messages_go_and_the_system_message_stays() -> None:
    messages = [message("system", 10), message("user", 10), message("assistant", 10), message("user", 11)]
    cut = fit(messages, (), 31, truncate=True)
    assert cut.messages == (messages[0], messages[2], messages[3])
    assert cut.tokens == 31


def test_a_tool_result_is_not_parted_from_its_call() -> None:
    call = {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "t", "arguments": {}}}]}
    messages = [message("user", 40), call, message("tool", 30), message("tool", 30)]
    assert fit(messages, (), 50, truncate=True).tokens <= 50
    assert fit(messages, (), 100, truncate=True).messages == tuple(messages[1:])


def test_a_last_message_that_is_too_long_loses_its_front_and_the_tools_with_it() -> None:
    cut = fit(
        [message("system", 10), {"role": "user", "content": "a" * 400 + "the end"}], ({"x": 1},), 40, truncate=True
    )
    assert cut.tools == ()
    assert cut.messages[0]["content"].endswith("the end")
    assert cut.tokens <= 40


def test_texts_that_share_words_are_nearer_than_texts_that_do_not() -> None:
    tea, cup, engine = map(vector_of, ("green tea in a cup", "a cup of green tea", "the engine of a car"))
    assert math.isclose(math.hypot(*tea), 1.0)
    assert len(tea) == 768
    assert sum(a * b for a, b in zip(tea, cup, strict=True)) > sum(a * b for a, b in zip(tea, engine, strict=True))
    assert vector_of("green tea in a cup") == tea


class _Part(BaseModel):
    name: str = Field(min_length=2)
    kind: str | None


class _Whole(BaseModel):
    parts: list[_Part] = Field(min_length=2)
    count: int = Field(gt=3)
    share: float = Field(le=-1)
    sure: bool
    note: str = "as it was"


def test_the_smallest_value_is_valid_for_its_schema() -> None:
    value = _Whole.model_validate(smallest(_Whole.model_json_schema()))
    assert len(value.parts) == 2


def test_a_schema_that_refers_to_itself_ends() -> None:
    loop = {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}}}}
    loop["$defs"]["a"]["required"] = ["a"]  # type: ignore[index]
    assert smallest(loop) is not None

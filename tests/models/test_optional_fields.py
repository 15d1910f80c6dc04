"""A form of the reply and token probabilities: how they are asked for, refused and read."""

from __future__ import annotations

import pytest

from local.core.errors import ModelError
from local.models.chat import Json, TokenScore, TokenScores
from local.models.client import LOGPROBS, OptionalFields
from local.models.http import token_scores
from local.models.openai import response_format

FORM: Json = {"format": {"type": "object"}}


def refusal(status: int | None, text: str = "no") -> ModelError:
    return ModelError(text, kind="bad_request", status=status)


@pytest.mark.parametrize(
    ("text", "left"),
    [("top_logprobs unknown", FORM), ("failed to parse GRAMMAR", LOGPROBS), ("bad json_schema", LOGPROBS), ("?", FORM)],
)
def test_a_refusal_takes_what_it_names_or_else_the_probabilities_first(text: str, left: Json) -> None:
    optional = OptionalFields(set(), form=FORM, logprobs=True)
    assert optional.fields == FORM | LOGPROBS
    assert optional.refused(refusal(400, text))
    assert optional.fields == left


def test_what_is_left_out_can_be_left_out_only_once() -> None:
    optional = OptionalFields(set(), form=FORM, logprobs=True)
    assert [bool(optional.refused(refusal(422))) for _ in range(3)] == [True, True, False]


@pytest.mark.parametrize("status", [None, 401, 404, 429, 500])
def test_other_failures_take_nothing(status: int | None) -> None:
    assert OptionalFields(set(), form=FORM, logprobs=True).refused(refusal(status, "logprobs")) is None


def test_a_closed_door_is_no_refusal_of_a_wish_unless_it_names_it() -> None:
    optional = OptionalFields(set(), form={}, logprobs=True)
    assert optional.refused(refusal(403, "check the key")) is None
    assert optional.refused(refusal(403, "You are not allowed to request logprobs from this model"))


def test_the_wish_for_progress_is_taken_only_by_a_refusal_that_names_it() -> None:
    optional = OptionalFields(set(), form={}, logprobs=False, progress={"return_progress": True})
    assert optional.refused(refusal(400, "the prompt is too long")) is None
    assert optional.refused(refusal(400, "unknown field return_progress"))
    assert optional.fields == {}


def test_only_what_has_helped_is_remembered() -> None:
    learned: set[str] = set()
    first = OptionalFields(learned, form=FORM, logprobs=True)
    first.refused(refusal(400, "logprobs"))
    assert OptionalFields(learned, form=FORM, logprobs=True).fields == FORM | LOGPROBS
    first.accepted()
    second = OptionalFields(learned, form=FORM, logprobs=True)
    assert (second.fields, len(second.notes)) == (FORM, 1)


CLOSED: Json = {"type": "object", "properties": {"a": {}}, "required": ["a"], "additionalProperties": False}


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (CLOSED, True),
        (CLOSED | {"required": []}, False),
        ({**CLOSED, "properties": {"a": {"type": "array", "items": {"type": "object"}}}}, False),
        ({**CLOSED, "properties": {"a": {"anyOf": [CLOSED, {"type": "null"}]}}}, True),
    ],
)
def test_openai_is_asked_strictly_where_its_rules_for_that_are_kept(schema: Json, strict: bool) -> None:
    described = response_format(schema)["response_format"]["json_schema"]
    assert (described["schema"], described["strict"]) == (schema, strict)


def test_a_token_is_read_with_its_alternatives() -> None:
    top = [{"token": "4", "logprob": -0.1}, {"token": "5", "logprob": -2.5}]
    entry = {"token": "4", "logprob": -0.1, "bytes": [52], "top_logprobs": top}
    assert list(token_scores({"logprobs": [entry]}, "logprobs")) == [
        TokenScores((TokenScore("4", {"4": -0.1, "5": -2.5}),))
    ]


@pytest.mark.parametrize("found", [None, [], {}, "x", [3], [{"token": None}], [{"top_logprobs": 3}]])
def test_probabilities_in_another_form_break_nothing(found: object) -> None:
    scores = [score for read in token_scores({"logprobs": found}, "logprobs") for score in read.tokens]
    assert all(score.alternatives == {} for score in scores)

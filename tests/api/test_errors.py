"""Failures as HTTP answers: a request for something unavailable gets a clear error, and no internal error."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from pydantic import BaseModel, ConfigDict, ValidationError

from local.api.http import RETRY_SECONDS, STATUS, error_response, field_fault, field_path
from local.core.errors import RequestTimeout, StoreFull, StoreLocked, StoreReadOnly

System = Any  # of conftest.py


@pytest.mark.parametrize("error", [StoreFull("x"), StoreReadOnly("x"), StoreLocked("x")], ids=lambda error: error.kind)
def test_a_store_that_can_be_written_again_later_is_no_fault_of_ours(error: Any) -> None:
    assert STATUS[error.kind] in (503, 507)


def test_a_full_disk_says_when_to_ask_again() -> None:
    answer = error_response("/query", StoreFull("x"))
    assert (answer.status_code, answer.headers["retry-after"]) == (507, RETRY_SECONDS)


def test_who_did_not_answer_is_named_for_people_and_the_subject_stands_beside_it() -> None:
    error = json.loads(error_response("/approvals", RequestTimeout("permission.request.list", 10, "gatekeeper")).body)
    said = "gatekeeper did not answer within 10 s; `local2 status` shows which participants run"
    assert error == {"error": {"kind": "timeout", "message": said, "subject": "permission.request.list"}}


class Part(BaseModel):
    """A part of a body."""

    model_config = ConfigDict(extra="forbid", strict=True)
    size: int


class Body(BaseModel):
    """A body."""

    model_config = ConfigDict(extra="forbid", strict=True)
    parts: str | list[Part] = ""
    names: tuple[str, ...] = ()
    extra: dict[str, int] = {}


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"parts": 5}, "parts: Input should be a valid string; parts: expected a list"),
        (
            {"parts": [{"size": "x"}]},
            "parts: Input should be a valid string; parts.0.size: Input should be a valid integer",
        ),
        ({"parts": [{}]}, "parts: Input should be a valid string; parts.0.size: Field required"),
        ({"names": "x"}, "names: expected a list"),
        ({"extra": []}, "extra: expected an object"),
        ({"": 1}, "'': there is no such field; GET /openapi.json describes those there are"),
        ({"\u202ea": 1}, "'\\u202ea': there is no such field; GET /openapi.json describes those there are"),
    ],
)
def test_a_fault_is_told_with_the_place_that_the_asker_knows(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError) as wrong:
        Body.model_validate(fields)
    assert "; ".join(f"{field_path(fault, fields)}: {field_fault(fault)}" for fault in wrong.value.errors()) == told


async def test_a_body_that_is_no_object_is_told_in_the_words_of_json(client: httpx.AsyncClient) -> None:
    for body, found in [
        ("null", "null"),
        ("[]", "a list"),
        ("7", "a number"),
        ('"x"', "a string"),
        ("true", "a boolean"),
    ]:
        answer = await client.post("/query", content=body, headers={"content-type": "application/json"})
        assert answer.status_code == 400
        assert answer.json()["error"]["message"] == f"body: expected a JSON object, found {found}"


async def test_a_number_that_no_message_can_have_is_invalid(client: httpx.AsyncClient) -> None:
    for path in ["/activity?before=4611686018427387904", "/activity?before=" + "9" * 40]:
        answer = await client.get(path)
        assert (answer.status_code, answer.json()["error"]["kind"]) == (422, "invalid")

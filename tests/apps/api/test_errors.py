"""Failures as HTTP answers: whoever asked for what cannot be had is told so, and nothing of ours is at fault then."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from pydantic import BaseModel, ConfigDict, ValidationError

from local.api.clients import ParticipantRefused
from local.api.http import STATUS, error_response, field_fault, field_path, status_of
from local.bus.message import ErrorInfo
from local.core.errors import RequestTimeout, StoreFull, StoreLocked, StoreReadOnly
from tests.source_trees import source_trees

System = Any  # of conftest.py

ASKED_ELSEWHERE = {
    "bad_question": "the commands of a terminal",
    "unknown_consumer": "the commands about the journal",
    "not_utf8": "the words of a command",
    "untrusted_fact": "the memory, of itself",
}


def bad_requests() -> Iterator[tuple[str, str]]:
    """Where a `BadRequest` is raised or declared, and its kind."""
    classes = [node for tree in source_trees().values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    kinds = {"BadRequest": "invalid"}
    for _ in range(3):  # those of a class below one, too
        for made in classes:
            bases = [base.id for base in made.bases if isinstance(base, ast.Name) and base.id in kinds]
            if bases:
                kinds[made.name] = _kind_in(made.body) or kinds[bases[0]]
    for path, tree in source_trees().items():
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in kinds:
                given = [word.value for word in call.keywords if word.arg == "kind"]
                literal = [value.value for value in given if isinstance(value, ast.Constant)]
                yield f"{path}:{call.lineno}", str(literal[0]) if literal else kinds[call.func.id]


def _kind_in(body: list[ast.stmt]) -> str | None:
    for line in body:
        if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "kind":
            return str(ast.literal_eval(line.value))
    return None


def test_every_bad_request_has_a_status_of_its_own() -> None:
    found = dict(bad_requests())
    assert {"bad_name", "bad_model", "not_found", "conflict"} <= set(found.values())
    told = {place: ParticipantRefused(ErrorInfo(kind=kind, message="")) for place, kind in found.items()}
    faults = {place: error.kind for place, error in told.items() if status_of(error) >= 500}
    assert {kind for kind in faults.values() if kind not in ASKED_ELSEWHERE} == set(), faults


@pytest.mark.parametrize("error", [StoreFull("x"), StoreReadOnly("x"), StoreLocked("x")], ids=lambda error: error.kind)
def test_a_store_that_can_be_written_again_later_is_no_fault_of_ours(error: Any) -> None:
    assert STATUS[error.kind] in (503, 507)


def test_who_did_not_answer_is_named_for_people_and_the_subject_stands_beside_it() -> None:
    error = json.loads(error_response("/approvals", RequestTimeout("permission.request.list", 10, "gatekeeper")).body)
    said = "gatekeeper did not answer within 10 s; `local2 status` shows who is there"
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


@pytest.mark.parametrize(
    ("body", "found"),
    [("null", "null"), ("[]", "a list"), ("7", "a number"), ('"x"', "a string"), ("true", "a boolean")],
)
async def test_a_body_that_is_no_object_is_told_in_the_words_of_json(
    client: httpx.AsyncClient, body: str, found: str
) -> None:
    answer = await client.post("/query", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == f"body: expected a JSON object, found {found}"


@pytest.mark.parametrize("path", ["/activity?before=4611686018427387904", "/activity?before=" + "9" * 40])
async def test_a_number_that_no_message_can_have_is_invalid(client: httpx.AsyncClient, path: str) -> None:
    answer = await client.get(path)
    assert (answer.status_code, answer.json()["error"]["kind"]) == (422, "invalid")

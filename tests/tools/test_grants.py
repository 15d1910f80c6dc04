"""A tool that may do more than read runs what the gatekeeper has signed, and nothing else."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from local.bus.bus import Bus
from local.bus.messages import Grant, ToolRequest, ToolResult, arguments_digest
from local.bus.zeromq import MemoryHub, MemoryTransport
from local.core import database as sqlite_file
from local.permissions.gatekeeper import GatekeeperService
from local.permissions.policy import GatekeeperConfig
from local.runtime.participant import Resources, Settingless
from local.tools import grants as signing
from local.tools.grants import FOLDER, PRIVATE, PUBLIC, GrantGuard, SigningKey
from local.tools.tool import Tool

NOW = 1000.0
ARGS = {"text": "café", "times": 2, "nested": {"b": [1.5, None], "a": True}}


class PenTool(Tool):
    """Write something, and say that in what it keeps."""

    name = "pen"

    def __init__(self) -> None:
        super().__init__(Settingless())
        self.written: list[str] = []

    async def run(self, text: str, times: int = 1, nested: dict[str, Any] | None = None) -> str:
        self.written.append(text)
        return "Written."


class GlassesTool(PenTool):
    """Read something."""

    name = "glasses"
    safety = "L0"


@pytest.fixture
def key(tmp_path: Path) -> SigningKey:
    return SigningKey.of(tmp_path / FOLDER)


def granted(key: SigningKey, **changed: Any) -> Grant:
    fields = {
        "call_id": "q1:0:0", "respondent_id": "A", "tool": "pen", "args_sha256": arguments_digest(ARGS),
        "expires_at": NOW, "key_id": key.key_id,
    }  # fmt: skip
    grant = Grant(**{**fields, **changed})
    return grant.model_copy(update={"signature": key.sign(grant.statement())})


def request(grant: Grant | None, **changed: Any) -> ToolRequest:
    fields = {"query_id": "q1", "call_id": "q1:0:0", "tool": "pen", "args": ARGS, "grant": grant}
    return ToolRequest(**{**fields, **changed})


async def outcome(serve: Any, folder: Path, asked: ToolRequest, tool: PenTool | None = None) -> tuple[Any, list[str]]:
    """The kind of the error, and what was written."""
    tool = tool or PenTool()
    tool.grants = GrantGuard(folder, lambda: NOW)
    caller = await serve(tool)
    result = await caller.bus.request(asked, type(await caller.call({}, "q0:0:0")), 10.0)
    return result.error and (result.error.kind, result.error.message), tool.written


def other_signature(key: SigningKey) -> Grant:
    return granted(key).model_copy(update={"expires_at": NOW + 1000.0})


FORGERIES: dict[str, Any] = {
    "without any": lambda key: request(None),
    "of another call": lambda key: request(granted(key, call_id="q1:0:1")),
    "of another respondent": lambda key: request(granted(key, respondent_id="B")),
    "of another tool": lambda key: request(granted(key, tool="pencil")),
    "of other arguments": lambda key: request(granted(key), args={**ARGS, "times": 3}),
    "of arguments of another type": lambda key: request(granted(key), args={**ARGS, "times": "2"}),
    "with one argument more": lambda key: request(granted(key), args={**ARGS, "more": None}),
    "that has run out": lambda key: request(granted(key, expires_at=NOW - 0.001)),
    "that was changed after it was signed": lambda key: request(other_signature(key)),
    "without a signature": lambda key: request(granted(key).model_copy(update={"signature": ""})),
    "with a signature that is none": lambda key: request(granted(key).model_copy(update={"signature": "zz"})),
    "of another key that says it is this one": lambda key: request(
        granted(SigningKey.of(Path(key.key_id)), key_id=key.key_id)
    ),
    "of another key": lambda key: request(granted(SigningKey.of(Path(key.key_id)))),
}


async def test_only_a_call_with_the_gatekeepers_grant_for_it_runs(
    serve: Any, tmp_path: Path, key: SigningKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # in which other keys are made
    tool = PenTool()
    tool.grants = GrantGuard(tmp_path, lambda: NOW)
    caller = await serve(tool)
    for name, forged in FORGERIES.items():
        error = (await caller.bus.request(forged(key), ToolResult, 10.0)).error
        assert (error and error.kind, tool.written) == ("not_granted", []), name
        assert error.message.startswith("pen was not run: "), name
    assert (await caller.bus.request(request(granted(key)), ToolResult, 10.0)).error is None
    assert tool.written == ["café"]


async def test_a_tool_that_only_reads_needs_no_grant(serve: Any, tmp_path: Path) -> None:
    tool = GlassesTool()
    assert (await outcome(serve, tmp_path, request(None, tool="glasses"), tool)) == (None, ["café"])


async def test_a_new_key_is_read_when_a_grant_names_it(serve: Any, tmp_path: Path, key: SigningKey) -> None:
    tool = PenTool()
    assert (await outcome(serve, tmp_path, request(granted(key)), tool))[0] is None
    (tmp_path / FOLDER / PRIVATE).unlink()
    new = SigningKey.of(tmp_path / FOLDER)
    assert new.key_id != key.key_id
    tool.grants.require(request(granted(new)))  # type: ignore[union-attr]
    with pytest.raises(Exception, match="signed with a key that is not the gatekeeper's"):
        tool.grants.require(request(granted(key)))  # type: ignore[union-attr]


def test_the_private_key_is_for_its_owner_alone_and_the_same_at_the_next_start(tmp_path: Path, key: SigningKey) -> None:
    private = tmp_path / FOLDER / PRIVATE
    assert private.stat().st_mode & 0o777 == 0o600
    assert SigningKey.of(tmp_path / FOLDER).key_id == key.key_id
    assert (tmp_path / FOLDER / PUBLIC).read_text().strip() == key.public.hex()
    assert private.read_text().strip() not in (tmp_path / FOLDER / PUBLIC).read_text()


async def test_on_a_full_disk_the_gatekeeper_waits_for_room_for_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, tries = signing.write_private, list[Path]()

    def full(path: Path, *more: Any) -> None:
        tries.append(path)
        if len(tries) < 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(path, *more)

    monkeypatch.setattr(signing, "write_private", full)
    monkeypatch.setattr(sqlite_file, "UNWRITABLE_SECONDS", 0.001)
    keeper = GatekeeperService.build(GatekeeperConfig(), Resources(tmp_path))
    keeper.bus = Bus("gatekeeper", MemoryTransport(MemoryHub()))
    async with keeper.lifespan():
        assert keeper._key.key_id == SigningKey.of(tmp_path / FOLDER).key_id
    assert tries == [tmp_path / FOLDER / PRIVATE] * 3 + [tmp_path / FOLDER / PUBLIC]

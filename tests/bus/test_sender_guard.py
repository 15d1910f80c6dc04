"""Declarations in their folder, and what the guard makes of them."""

from __future__ import annotations

import json
import logging
import os
import stat
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from local.bus.envelope import Envelope
from local.bus.messages import ParticipantStatus
from local.bus.receiving import Dispatcher, RejectLog
from local.bus.security import MAX_PROCESSES, UNKNOWN_SECONDS, Declaration, Declarations, SenderGuard
from local.core.errors import DeclarationNotWritten

SEARCH = Declaration(frozenset({"tool.schema", "tool.result.web_search", "memory.request."}), frozenset({"search"}))


class Names:
    """What is declared, and how often somebody has looked."""

    def __init__(self) -> None:
        self.declared: dict[str, Declaration] = {"web_search": SEARCH}
        self.looked: Counter[str] = Counter()
        self.now = 0.0
        self.guard = SenderGuard(self._look, lambda: self.now)

    def _look(self, name: str) -> Declaration | None:
        self.looked[name] += 1
        return self.declared.get(name)

    def may(self, subject: str, name: str = "web_search", instance: str = "i") -> bool:
        return self.guard.may_publish(name, instance, subject)


@pytest.fixture
def names() -> Names:
    return Names()


@pytest.mark.parametrize(
    ("subject", "may"),
    [
        ("tool.schema", True),
        ("tool.schema.request", False),
        ("tool.result.web_search", True),
        ("tool.result.web_search_too", False),
        ("tool.result.", False),
        ("memory.request.search", True),
        ("memory.result.search", False),
        ("bus.probe.i", True),
        ("response.generation", False),
        ("", False),
    ],
)
def test_a_sender_says_the_subjects_and_families_that_it_has_declared(names: Names, subject: str, may: bool) -> None:
    for _ in range(2):  # found, and remembered
        assert names.may(subject) is may


def test_a_declaration_is_read_once_for_each_process(names: Names) -> None:
    for _ in range(3):
        assert names.may("tool.schema") and not names.may("query.received")
    assert names.looked == {"web_search": 1}
    names.declared["web_search"] = Declaration(frozenset({"query.received"}))  # it was mended, and starts again
    assert names.may("tool.schema")
    assert names.may("query.received", instance="its next process")
    assert not names.may("tool.schema", instance="its next process")


def test_a_name_that_nobody_has_declared_may_prove_its_connection_and_no_more(names: Names) -> None:
    assert names.may("bus.probe.x", "stranger") and not names.may("participant.status", "stranger")
    names.declared["stranger"] = SEARCH
    assert not names.may("tool.schema", "stranger")
    assert names.looked["stranger"] == 1
    names.now = UNKNOWN_SECONDS
    assert names.may("tool.schema", "stranger")


def test_names_and_processes_that_somebody_makes_up_take_no_more_room_than_there_is(names: Names) -> None:
    for number in range(2 * MAX_PROCESSES + 5):
        names.may("tool.schema", f"stranger{number}")
        names.may("tool.schema", instance=f"{number}")
    assert len(names.guard._unknown) <= MAX_PROCESSES and len(names.guard._processes) <= MAX_PROCESSES


def test_whoever_serves_a_consumer_has_declared_that(names: Names) -> None:
    assert names.guard.may_serve("web_search", "i", "search")
    assert not names.guard.may_serve("web_search", "i", "memory")
    assert not names.guard.may_serve("stranger", "i", "search")


def test_a_declaration_is_a_file_for_each_name(tmp_path: Path) -> None:
    declarations = Declarations(tmp_path / "senders")
    assert declarations.read("web_search") is None
    declarations.write("web_search", SEARCH)
    declarations.write("../escape", SEARCH)
    assert declarations.read("web_search") == declarations.read("../escape") == SEARCH
    assert {path.parent for path in tmp_path.rglob("*.json")} == {tmp_path / "senders"}
    assert stat.S_IMODE((tmp_path / "senders").stat().st_mode) == 0o700


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"name":"x"}', '{"name":"dice","says":[],"serves":[]}'])
def test_a_file_that_cannot_be_read_declares_nothing(tmp_path: Path, content: str) -> None:
    (tmp_path / "x.json").write_text(content)
    assert Declarations(tmp_path).read("x") is None


@pytest.mark.parametrize("name", ["x" * 5000, "\0", "a\nb", ".", ".."])
def test_a_strange_name_is_nobody_s(tmp_path: Path, name: str) -> None:
    assert Declarations(tmp_path).read(name) is None


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_what_was_declared_before_can_be_declared_where_nothing_can_be_written(tmp_path: Path) -> None:
    Declarations(tmp_path).write("web_search", SEARCH)
    tmp_path.chmod(0o500)
    Declarations(tmp_path).write("web_search", SEARCH)
    with pytest.raises(DeclarationNotWritten, match="what dice may say cannot be written down"):
        Declarations(tmp_path).write("dice", SEARCH)


def test_on_a_full_disk_nothing_is_left_of_what_could_not_be_declared(small_disk: Any) -> None:
    declarations = Declarations(small_disk.folder / "senders")
    declarations.write("web_search", SEARCH)
    with small_disk.full(), pytest.raises(DeclarationNotWritten, match="No space left"):
        declarations.write("dice", SEARCH)
    assert [file.name for file in declarations.folder.iterdir()] == ["web_search.json"]
    declarations.write("dice", SEARCH)
    assert declarations.read("dice") == SEARCH


def test_a_place_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DeclarationNotWritten, match=r"file/senders/dice\.json: what dice may say"):
        Declarations(tmp_path / "file" / "senders").write("dice", SEARCH)


def test_what_is_declared_already_is_not_written_again(tmp_path: Path) -> None:
    declarations = Declarations(tmp_path)
    declarations.write("web_search", SEARCH)
    inode = (tmp_path / "web_search.json").stat().st_ino
    declarations.write("web_search", SEARCH)
    assert (tmp_path / "web_search.json").stat().st_ino == inode
    declarations.write("web_search", Declaration(frozenset()))
    assert declarations.read("web_search") == Declaration(frozenset())


def test_what_is_refused_is_counted_sampled_and_logged_once(
    names: Names, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    counters: Counter[str] = Counter()
    rejects = RejectLog(tmp_path / "rejected.jsonl")
    dispatcher = Dispatcher("me", "here", counters, rejects, lambda *_: True, lambda _: None, names.guard)
    heard: list[str] = []
    for subject in ("response.generation", "tool.schema", "participant.status"):
        dispatcher.add(subject, lambda envelope: heard.append(envelope.subject), repeats=True)
    status = ParticipantStatus(name="memory", kind="agent", pid=1, instance="i", state="ready")
    names.declared["web_search"] = Declaration(SEARCH.says | {"participant.status"})
    with caplog.at_level(logging.WARNING):
        for seq in (1, 2, 3):
            dispatcher.on_frame(Envelope("response.generation", f"{seq}", "web_search", "i", seq, "q", b"{}").encode())
        dispatcher.on_frame(Envelope("participant.status", "4", "web_search", "i", 1, "q", status.encode()).encode())
        dispatcher.on_frame(Envelope("tool.schema", "5", "web_search", "i", 1, "q", b"{}").encode())
    assert heard == ["tool.schema"]
    assert (counters["refused"], counters["received"], counters["malformed"]) == (4, 1, 0)
    assert [record.getMessage() for record in caplog.records] == [
        "refused: web_search has not declared that it says response.generation",
        "refused: web_search says how memory is",
    ]
    assert len((tmp_path / "rejected.jsonl").read_text().splitlines()) == 4


@pytest.mark.parametrize(
    ("subject", "payload", "is_refused"),
    [
        ("response.generation", b'{"respondent_id":"B"}', False),
        ("response.generation", b'{"respondent_id":"A"}', True),
        (
            "response.generation",
            b'{"tool_calls":[{"respondent_id":"B"}]}',
            True,
        ),  # the main one
        ("response.generation", b"[]", True),
        ("participant.status", b'{"name":"generator_b"}', False),  # names no respondent
    ],
)
def test_who_answers_as_one_respondent_is_refused_as_another(
    names: Names, subject: str, payload: bytes, is_refused: bool
) -> None:
    says = frozenset({"response.generation", "participant.status"})
    names.declared["generator_b"] = Declaration(says, speaks_as="B")
    fault = names.guard.fault(Envelope(subject, "1", "generator_b", "i", 1, "q", payload))
    assert (fault is not None) is is_refused


def test_a_declaration_of_an_earlier_version_binds_to_no_respondent(tmp_path: Path) -> None:
    Declarations(tmp_path).write("generator", Declaration(frozenset({"response.generation"})))
    (path,) = tmp_path.glob("*.json")
    value = json.loads(path.read_text())
    del value["speaks_as"]
    path.write_text(json.dumps(value))
    assert Declarations(tmp_path).read("generator") == Declaration(frozenset({"response.generation"}))


HEAR = """
import sys
from local.bus.security import Declaration, SenderGuard
from local.bus.envelope import Envelope

guard = SenderGuard(lambda name: Declaration(frozenset({"participant.status", "response.generation"}), speaks_as="A"))
for subject in ("participant.status", "response.generation"):
    assert guard.fault(Envelope(subject, "1", "generator", "i", 1, "q", b"{}")) is None
    print("local.memory.messages" in sys.modules)
"""


def test_who_hears_how_everybody_is_and_nothing_else_imports_no_other_messages() -> None:
    """As the supervisor does, in the midst of a start."""
    assert "respondent_id" not in ParticipantStatus.model_fields
    done = subprocess.run([sys.executable, "-c", HEAR], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]

"""Permissions to publish: declarations in their folder, the guard that reads them, and the keys of a tcp bus."""

from __future__ import annotations

import json
import logging
import os
import stat
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from local.bus.envelope import Envelope
from local.bus.messages import ParticipantStatus
from local.bus.receiving import Dispatcher, RejectLog
from local.bus.security import (
    UNKNOWN_SECONDS,
    BadKeys,
    Declaration,
    Declarations,
    Keyring,
    SenderGuard,
)
from local.core.bus_address import CurveKeys
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


def test_a_file_that_cannot_be_read_or_a_strange_name_declares_nothing(tmp_path: Path) -> None:
    for content in ("", "{", "[]", "null", '{"name":"x"}', '{"name":"dice","says":[],"serves":[]}'):
        (tmp_path / "x.json").write_text(content)
        assert Declarations(tmp_path).read("x") is None
    for name in ("x" * 5000, "\0", "a\nb", ".", ".."):
        assert Declarations(tmp_path).read(name) is None


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_what_was_declared_before_can_be_declared_where_nothing_can_be_written(tmp_path: Path) -> None:
    Declarations(tmp_path).write("web_search", SEARCH)
    tmp_path.chmod(0o500)
    Declarations(tmp_path).write("web_search", SEARCH)
    with pytest.raises(DeclarationNotWritten, match="the declaration of dice cannot be written"):
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
    with pytest.raises(DeclarationNotWritten, match=r"file/senders/dice\.json: the declaration of dice"):
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
        "refused: web_search has not declared the subject response.generation",
        "refused: web_search sends a status for memory",
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


# The keys of a tcp bus


@pytest.fixture
def keyring(tmp_path: Path) -> Keyring:
    return Keyring(tmp_path / "keys")


def test_keys_are_made_once_and_for_their_owner_alone(keyring: Keyring, tmp_path: Path) -> None:
    server, dice, fetch = keyring.server(), keyring.of("dice"), keyring.of("web_fetch")
    folder = tmp_path / "keys"
    assert sorted(path.name for path in folder.iterdir()) == ["bus.keys", "dice.keys", "web_fetch.keys"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert (Keyring(folder).server(), Keyring(folder).of("dice")) == (server, dice)
    assert len({server.public, server.secret, dice.public, dice.secret, fetch.public, fetch.secret}) == 6
    assert dice.server_public == fetch.server_public == server.public


def test_a_key_belongs_to_a_name_until_its_file_is_removed(keyring: Keyring, tmp_path: Path) -> None:
    dice = keyring.of("dice")
    assert keyring.name_of(dice.public) == "dice"
    assert keyring.name_of(Keyring(tmp_path / "foreign").of("dice").public) is None
    assert keyring.name_of(keyring.server().public) is None
    later = keyring.of("later")
    assert keyring.name_of(later.public) == "later"
    folder = tmp_path / "keys"
    before = folder.stat()
    (folder / "dice.keys").unlink()
    os.utime(folder, ns=(before.st_atime_ns, before.st_mtime_ns))  # as on a disk whose clock ticks every few ms
    assert keyring.name_of(dice.public) is None


@pytest.mark.parametrize("name", ["../outside", "with a blank", "a/b", "bus by hand", "..", "Ünïcode"])
def test_a_name_cannot_leave_the_folder(keyring: Keyring, tmp_path: Path, name: str) -> None:
    assert keyring.name_of(keyring.of(name).public) == name
    assert {path.parent for path in tmp_path.rglob("*.keys")} == {tmp_path / "keys"}


def test_the_proxy_s_own_name_is_nobody_else_s(keyring: Keyring) -> None:
    with pytest.raises(BadKeys, match="'bus' is the name of the proxy"):
        keyring.of("bus")


def test_another_machine_needs_one_file_alone(keyring: Keyring, tmp_path: Path) -> None:
    dice = keyring.of("dice")
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "dice.keys").write_bytes((tmp_path / "keys" / "dice.keys").read_bytes())
    assert Keyring(tmp_path / "there").of("dice") == dice


def test_two_who_make_the_same_keys_at_the_same_time_have_the_same(keyring: Keyring) -> None:
    found: list[CurveKeys] = []
    together = threading.Barrier(4)

    def make() -> None:
        together.wait(90)
        found.append(keyring.of("dice"))

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(found) == {keyring.of("dice")}


def test_the_four_keys_of_an_earlier_version_are_still_the_proxy_s(keyring: Keyring, tmp_path: Path) -> None:
    server, client = keyring.server(), Keyring(tmp_path / "other").server()
    old = [server.public, server.secret, client.public, client.secret]
    (tmp_path / "keys" / "bus.keys").write_text("\n".join(old) + "\n")
    assert keyring.server() == server
    assert keyring.name_of(client.public) is None  # whoever has that one is nobody in particular


@pytest.mark.parametrize(
    "content", [b"", b"short\n" * 4, b"\xff" * 100, ("'" * 40 + "\n").encode() * 4, b"0" * 40 + b"\n"], ids=repr
)
@pytest.mark.parametrize("name", ["bus", "dice"])
def test_a_damaged_file_is_named_with_what_to_do(keyring: Keyring, tmp_path: Path, name: str, content: bytes) -> None:
    keyring.of("dice")
    (tmp_path / "keys" / f"{name}.keys").write_bytes(content)
    with pytest.raises(BadKeys, match=rf"{name}\.keys does not hold (two|three) keys of 40 characters; remove it"):
        keyring.server() if name == "bus" else keyring.of("dice")


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadKeys, match=r"file/keys/bus\.keys cannot be written"):
        Keyring(tmp_path / "file" / "keys").server()

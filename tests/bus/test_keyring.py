"""The keys of a tcp bus: one pair for each name, made once, for their owner alone."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from local.bus.security import BadKeys, Keyring
from local.core.bus_address import CurveKeys


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
    with pytest.raises(BadKeys, match="'bus' is the proxy's own name"):
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
        together.wait(30)
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

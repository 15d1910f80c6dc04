"""Who may use a system besides its owner, and the owner's token: what is kept of them, and where."""

from __future__ import annotations

import logging
import os
import stat
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import cast

import pytest

from local.api.http import RequestRefused
from local.api.security import Principals
from local.cli.entry import main
from local.core.data_dir import TOKEN_PREFIX, RunDirectory, make_owner_token, owner_token
from local.core.errors import ConfigError
from local.core.users import INVITED_SECONDS, UserRefused, Users
from local.run.run import SystemPlan
from local.run.run import _greet as greet
from local.run.window import WindowState


@pytest.fixture(autouse=True)
def umask_of_the_test() -> Iterator[None]:
    """A command sets its own, for its whole process."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_of_a_token_only_the_hash_is_kept_for_the_eyes_of_the_owner(tmp_path: Path) -> None:
    users = Users(tmp_path)
    token = users.add("ann")
    assert token.startswith(TOKEN_PREFIX) and len(token) > 40
    assert users.name_of(token) == "ann" and users.name_of(token + "x") is None
    assert token.removeprefix(TOKEN_PREFIX) not in (tmp_path / "users.yaml").read_text()
    assert mode(tmp_path / "users.yaml") == 0o600


def test_what_another_process_changes_counts_at_once(tmp_path: Path) -> None:
    running, command = Users(tmp_path), Users(tmp_path)
    assert running.name_of("x") is None
    token = command.add("ann")
    assert running.name_of(token) == "ann"
    command.remove("ann")
    assert running.name_of(token) is None and not running.knows("ann")
    assert running.name_of(command.add("ann", again=True)) == "ann" and running.name_of(token) is None


@pytest.mark.parametrize("name", ["", "a b", "owner", "ä", "x" * 129, "a/b"])
def test_a_name_that_is_no_user_id_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserRefused) as refused:
        Users(tmp_path).add(name)
    assert refused.value.kind == "invalid" and repr(name) in str(refused.value)


@pytest.mark.parametrize("name", ["ann", "1", "1.5", "yes", "null", "~", "a:b", "-"])
def test_a_name_that_yaml_would_take_for_something_else_is_a_name(tmp_path: Path, name: str) -> None:
    users = Users(tmp_path)
    assert users.name_of(users.add(name)) == name
    assert list(Users(tmp_path).all()) == [name]


def test_a_user_is_added_once_and_removed_once(tmp_path: Path) -> None:
    users = Users(tmp_path)
    users.add("ann")
    with pytest.raises(UserRefused, match="has a token already"):
        users.add("ann")
    users.remove("ann")
    with pytest.raises(UserRefused, match="there is no user ann"):
        users.remove("ann")


def test_a_removed_user_s_name_is_given_to_the_same_person_alone(tmp_path: Path) -> None:
    users = Users(tmp_path)
    users.add("ann")
    users.remove("ann")
    with pytest.raises(UserRefused, match="the conversations of ann are still there") as refused:
        Users(tmp_path).add("ann")
    assert refused.value.kind == "removed" and not users.knows("ann")
    assert users.name_of(users.add("ann", again=True)) == "ann"


def test_an_invitation_works_once_in_its_time_and_ends_with_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    users, later = Users(tmp_path), Users(tmp_path)
    users.add("ann")
    first, second = users.invite("ann"), users.invite("ann")
    assert second not in (tmp_path / "users.yaml").read_text()
    assert [later.use_invitation(code) for code in (first, second, second, "", "guess")] == [
        None, "ann", None, None, None,
    ]  # fmt: skip
    old = users.invite("ann")
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + INVITED_SECONDS + 1)
    assert users.use_invitation(old) is None
    gone = users.invite("ann")
    users.remove("ann")
    assert users.use_invitation(gone) is None
    with pytest.raises(UserRefused, match="there is no user ann"):
        users.invite("ann")


def test_users_that_are_added_at_once_are_all_there(tmp_path: Path) -> None:
    names = [f"user{number}" for number in range(20)]
    with ThreadPoolExecutor(8) as pool:
        tokens = list(pool.map(lambda name: Users(tmp_path).add(name), names))
    users = Users(tmp_path)
    assert [users.name_of(token) for token in tokens] == names


@pytest.mark.parametrize(
    "text",
    ["users: [", "users: {ann: {token_sha256: x}}", "ann: 1", "users: {owner: {token_sha256: '%s'}}" % ("0" * 64)],
)
def test_a_file_that_cannot_be_read_lets_nobody_in_and_says_why(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    users = Users(tmp_path)
    token = users.add("ann")
    (tmp_path / "users.yaml").write_text(text)
    with caplog.at_level(logging.ERROR):
        assert users.name_of(token) is None
        assert users.name_of(token) is None
    assert caplog.text.count("users.yaml:1") == 1
    with pytest.raises(ConfigError):
        users.add("bob")
    assert (tmp_path / "users.yaml").read_text() == text


def test_the_command_prints_the_token_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "data"  # before the first start

    def told(*command: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            main(["user", *command, "--data-dir", str(folder)])
        return int(str(end.value.code)), *capsys.readouterr()

    status, out, err = told("add", "ann")
    token = out.strip()
    assert (status, Users(folder).name_of(token)) == (0, "ann") and token not in err
    assert told("list")[1].startswith("ann  since 20") and told("add", "ann")[0] == 2
    assert told("remove", "ann")[0] == 0 and Users(folder).name_of(token) is None
    assert mode(folder) == 0o700


def test_the_owner_s_token_is_made_once_and_for_this_unix_user_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LOCAL2_API_TOKEN", raising=False)
    assert owner_token(tmp_path) is None
    token = make_owner_token(tmp_path)
    assert token.startswith(TOKEN_PREFIX)
    (tmp_path / "api_token").chmod(0o644)
    assert make_owner_token(tmp_path) == owner_token(tmp_path) == token
    assert mode(tmp_path / "api_token") == 0o600
    (tmp_path / "api_token").write_text("")
    assert make_owner_token(tmp_path) not in ("", token)
    monkeypatch.setenv("LOCAL2_API_TOKEN", "mine")
    assert make_owner_token(tmp_path) == owner_token(tmp_path) == "mine"


def test_a_data_directory_that_others_could_read_is_closed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for open_mode in (0o755, 0o777, 0o750):
        folder = tmp_path / f"{open_mode:o}"
        folder.mkdir()
        folder.chmod(open_mode)
        RunDirectory(folder).make_data_dir()
        assert mode(folder) == 0o700 and str(folder) in caplog.text
        os.umask(0)
        RunDirectory(tmp_path / "new" / f"{open_mode:o}").make_data_dir()
        os.umask(0o022)
        assert mode(tmp_path / "new" / f"{open_mode:o}") == 0o700


def test_a_folder_of_everybody_s_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    with pytest.raises(ConfigError, match="--data-dir"):
        RunDirectory(tmp_path).make_data_dir()
    assert mode(tmp_path) == 0o1777


class Codes(BaseHTTPRequestHandler):
    """An API that makes codes."""

    def do_POST(self) -> None:
        assert (self.path, self.headers["authorization"]) == ("/sign-in/codes", f"Bearer {self.server.token}")  # type: ignore[attr-defined]
        self.send_response(201)
        self.end_headers()
        self.wfile.write(b'{"code": "once", "seconds": 600}')

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.mark.parametrize("is_terminal", [True, False])
def test_the_link_has_a_one_time_code_for_whoever_sits_at_the_terminal_and_the_token_is_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], is_terminal: bool
) -> None:
    monkeypatch.delenv("LOCAL2_API_TOKEN", raising=False)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    token = make_owner_token(tmp_path)
    with HTTPServer(("127.0.0.1", 0), Codes) as api:
        api.token = token  # type: ignore[attr-defined]
        url = f"http://127.0.0.1:{api.server_port}"
        asked = Thread(target=api.handle_request)
        if is_terminal:
            asked.start()
        plan = SimpleNamespace(
            api_url=url, data_dir=tmp_path, backend=SimpleNamespace(name="ollama"), window=WindowState.UNWANTED
        )
        greet(cast(SystemPlan, plan))
        if is_terminal:
            asked.join()
    shown = capsys.readouterr().err
    assert f"LoCAL2 is ready: {url}{'/#code=once' if is_terminal else ''}  model server" in shown
    assert token not in shown
    if is_terminal:
        greet(cast(SystemPlan, plan))  # and nobody answers
        assert f"LoCAL2 is ready: {url}  model server" in capsys.readouterr().err


def test_the_system_is_started_with_a_umask_that_leaves_others_nothing() -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    assert os.umask(0o022) == 0o077


async def test_a_token_is_not_called_unknown_where_the_data_directory_is_gone(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    token = Users(folder).add("ann")
    principals = Principals(lambda: None, Users(folder))
    assert (await principals.of({"authorization": f"Bearer {token}"}, None)).user_id == "ann"
    folder.rename(tmp_path / "away")
    with pytest.raises(RequestRefused) as refused:
        await principals.of({"authorization": f"Bearer {token}"}, None)
    assert refused.value.kind == "unavailable"

"""`local2 prompt show` prints what the model gets."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from local.apps.cli import main
from local.apps.prompt import show
from local.apps.run_directory import Facts, NotRunning, RunDirectory
from local.errors import NoAnswer

GENERATOR = """
system_prompt: Be brief.
prompts: {terse: One word.}
"""
SAID = [
    {"role": "system", "content": "What the running one is told."},
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Hello."},
]


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    (tmp_path / "generator.yaml").write_text(GENERATOR)
    return tmp_path


@contextmanager
def running(data_dir: Path, *session_ids: str) -> Iterator[None]:
    """A system with these sessions."""

    class Api(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            listed = {"sessions": [{"session_id": each, "updated_at": 1.0} for each in session_ids]}
            answers = {"/sessions": listed, **{f"/sessions/{each}": {"messages": SAID} for each in session_ids}}
            error = {"error": {"kind": "not_found", "message": "there is no such session"}}
            body = json.dumps(answers.get(self.path, error)).encode()
            self.send_response(200 if self.path in answers else 404)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *values: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Api) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        RunDirectory(data_dir).tell(
            Facts(os.getpid(), "", "", False, "", "", f"http://127.0.0.1:{server.server_port}", {})
        )
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


def test_what_is_shown_is_the_variant_with_the_date(settings: Path) -> None:
    (settings / "system.yaml").write_text("participants: [generator]\n")
    today = f"Today is {date.today():%A}"
    assert show(None, None, settings, None).startswith(f"--- system\nBe brief.\n\n{today}")
    assert show("terse", None, settings, None).startswith(f"--- system\nOne word.\n\n{today}")


def test_a_tool_that_changes_something_is_shown_to_be_warned_of(settings: Path) -> None:
    (settings / "mail_tool_of_prompt.py").write_text(
        "from local.tools.tool import Tool\n\n\nclass MailTool(Tool):\n    'Send mail.'\n\n"
        "    name, effect = 'send_mail', 'write'\n\n    async def run(self) -> str:\n        return ''\n"
    )
    (settings / "system.yaml").write_text("participants: [generator, 'mail_tool_of_prompt:MailTool']\n")
    assert "- send_mail changes something" in show(None, None, settings, None)


def test_settings_of_the_generator_in_the_list_of_participants_count(settings: Path) -> None:
    (settings / "system.yaml").write_text("participants: [generator: {prompt: terse}]\n")
    assert "One word." in show(None, None, settings, None)


def test_an_unknown_variant_is_named_with_the_one_that_was_meant(
    settings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["prompt", "show", "--prompt", "ters", "--config-dir", str(settings)])
    assert ended.value.code == 2
    assert "there is no prompt 'ters'; did you mean terse?" in capsys.readouterr().err


def test_a_session_is_shown_as_the_running_generator_tells_it(settings: Path, tmp_path: Path) -> None:
    with running(tmp_path, "s1"):
        shown = show(None, "s1", settings, tmp_path)
        assert shown.startswith("--- system\nWhat the running one is told.\n\n--- user\nHi")
        assert show("terse", "s1", settings, tmp_path).startswith("--- system\nOne word.")
        assert show("terse", "s1", settings, tmp_path).endswith("--- user\nHi\n\n--- assistant\nHello.")


def test_the_beginning_of_a_sessions_id_is_enough_if_it_is_that_of_one(settings: Path, tmp_path: Path) -> None:
    with running(tmp_path, "4f2a77", "4f2b", "4f2"):
        for session_id in ("4f2a", "4f2"):  # the latter is one itself
            assert "--- user\nHi" in show(None, session_id, settings, tmp_path)
        with pytest.raises(NoAnswer, match="3 sessions begin with '4f': 4f2a77, 4f2b, 4f2; give more of it"):
            show(None, "4f", settings, tmp_path)
        with pytest.raises(NoAnswer, match="there is no such session"):
            show(None, "5", settings, tmp_path)


def test_a_session_without_a_system_says_what_to_do(settings: Path, tmp_path: Path) -> None:
    with pytest.raises(NotRunning, match="no system runs"):
        show(None, "s1", settings, tmp_path)


def test_the_command_prints_it(settings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["prompt", "show", "--config-dir", str(settings)])
    assert ended.value.code in (0, None)
    assert "Be brief." in capsys.readouterr().out

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

from local.cli.entry import main
from local.core.data_dir import NotRunning, RunDirectory, RunInfo
from local.core.errors import NoAnswer
from local.run.prompt_commands import as_text, in_words, messages, sections

GENERATOR = """
system_prompt: Be brief.
prompts: {terse: One word.}
"""
SAID = [
    {"role": "system", "content": "What the running one is told."},
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Hello."},
]


PROMPT = {
    "model": "gemma4:12b", "tier": "mid", "mode": "plan", "tokens": 7, "problems": ["SOUL.md is left out"],
    "sections": [{"name": "role", "least": "small", "origin": "generator.yaml", "text": "As it runs.", "tokens": 7}],
}  # fmt: skip


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
            answers = {
                "/sessions": listed,
                "/prompt": PROMPT,
                **{f"/sessions/{each}": {"messages": SAID} for each in session_ids},
            }
            error = {"error": {"kind": "not_found", "message": "there is no such session"}}
            path, _, _ = self.path.partition("?")
            body = json.dumps(answers.get(path, error)).encode()
            self.send_response(200 if path in answers else 404)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *values: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Api) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        RunDirectory(data_dir).write(
            RunInfo(os.getpid(), "", "", False, "", "", f"http://127.0.0.1:{server.server_port}", {})
        )
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


def show(prompt: str | None, settings: Path) -> str:
    return in_words(sections(prompt, None, settings, None))


def test_what_is_shown_is_the_variant_with_the_date(settings: Path) -> None:
    (settings / "system.yaml").write_text("participants: [generator]\n")
    assert show(None, settings).startswith("--- role · 3 tokens · generator.yaml\nBe brief.\n\n--- date")
    assert "· generator.yaml, prompts: terse\nOne word.\n\n--- date" in show("terse", settings)
    assert f"Today is {date.today():%A}" in show(None, settings)


def test_a_tool_that_changes_something_is_shown_to_be_warned_of(settings: Path) -> None:
    (settings / "mail_tool_of_prompt.py").write_text(
        "from local.tools.tool import Tool\n\n\nclass MailTool(Tool):\n    'Send mail.'\n\n"
        "    name, effect = 'send_mail', 'write'\n\n    async def run(self) -> str:\n        return ''\n"
    )
    (settings / "system.yaml").write_text("participants: [gatekeeper, generator, 'mail_tool_of_prompt:MailTool']\n")
    shown = show(None, settings)
    assert "Call a tool that changes something" in shown and "need the user's approval" in shown
    assert shown.endswith("(mid) · mode default")


def test_settings_of_the_generator_in_the_list_of_participants_count(settings: Path) -> None:
    (settings / "system.yaml").write_text("participants: [generator: {prompt: terse}]\n")
    assert "One word." in show(None, settings)


def test_of_a_system_that_runs_it_is_the_one_that_it_tells(
    settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL2_CONFIG_DIR", str(settings))
    assert "Be brief." in in_words(sections(None, None, None, tmp_path))
    with running(tmp_path):
        assert sections(None, None, None, tmp_path) == PROMPT
        assert "One word." in in_words(sections("terse", None, None, tmp_path))


def test_an_unknown_variant_is_named_with_the_one_that_was_meant(
    settings: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["prompt", "show", "--prompt", "ters", "--config-dir", str(settings)])
    assert ended.value.code == 2
    assert "there is no prompt 'ters'; did you mean terse?" in capsys.readouterr().err


def show_session(prompt: str | None, session_id: str, settings: Path, data_dir: Path) -> str:
    return as_text(messages(prompt, session_id, settings, data_dir))


def test_a_session_is_shown_as_the_running_generator_tells_it(settings: Path, tmp_path: Path) -> None:
    with running(tmp_path, "s1"):
        shown = show_session(None, "s1", settings, tmp_path)
        assert shown.startswith("--- system\nWhat the running one is told.\n\n--- user\nHi")
        other = show_session("terse", "s1", settings, tmp_path)
        assert other.startswith("--- system\nOne word.") and other.endswith("--- user\nHi\n\n--- assistant\nHello.")


def test_the_beginning_of_a_sessions_id_is_enough_if_it_is_that_of_one(settings: Path, tmp_path: Path) -> None:
    with running(tmp_path, "4f2a77", "4f2b", "4f2"):
        for session_id in ("4f2a", "4f2"):  # the latter is one itself
            assert "--- user\nHi" in show_session(None, session_id, settings, tmp_path)
        with pytest.raises(NoAnswer, match="3 sessions begin with '4f': 4f2a77, 4f2b, 4f2; type more of it"):
            show_session(None, "4f", settings, tmp_path)
        with pytest.raises(NoAnswer, match="there is no such session"):
            show_session(None, "5", settings, tmp_path)


def test_a_session_without_a_system_says_what_to_do(settings: Path, tmp_path: Path) -> None:
    with pytest.raises(NotRunning, match="no system runs"):
        show_session(None, "s1", settings, tmp_path)


def test_the_command_prints_it(settings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["prompt", "show", "--config-dir", str(settings)])
    assert ended.value.code in (0, None)
    assert "Be brief." in capsys.readouterr().out


def test_with_json_it_is_for_programs(settings: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["prompt", "show", "--json", "--config-dir", str(settings)])
    assert json.loads(capsys.readouterr().out)["sections"][0]["text"] == "Be brief."

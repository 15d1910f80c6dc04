"""`local2 status`, `sessions`, `memory`, `completion` and `--version`, with a frontend that gives set answers."""

from __future__ import annotations

import importlib
import io
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from local.cli import main as terminal
from local.cli.command_table import COMMANDS
from local.cli.commands import tools_of
from local.cli.entry import main
from local.cli.temporary_system import SystemDidNotStart, TemporarySystem
from local.core.data_dir import RunDirectory
from local.core.errors import BadQuestion

Json = dict[str, Any]
ENGRAM = {"engram_id": "e" * 32, "asked_at": 0.0, "query": "I take my\ncoffee \x1b[31mblack.", "pinned": True}
ROW: Json = {"session_id": "s" * 32, "updated_at": 0.0, "turns": 2, "title": "Sums", "pinned": False, "open": 1}
CHILD = {"name": "critic", "kind": "agent", "state": "failed", "pid": None, "restarts": 5, "detail": "it died"}
FACT = {"slot": "name", "value": "Ann", "stated_at": 0.0, "engram_id": "e" * 32, "superseded_at": 9.0, "certain": False}
FOUND = {**ROW, "match": {"query_id": "q", "excerpt": "2+2 is"}}
IMPORTED: Json = {
    "sources": ["ChatGPT"], "found": 3, "new": 2, "known": 1, "turns": 7, "cut": 0,
    "conversations": [{"title": "Tea\x1b[31m", "turns": 5}, {"title": "", "turns": 2}],
    "left_out": [{"title": "Empty", "reason": "there is no question in it"}],
}  # fmt: skip
ANSWERS: dict[str, tuple[int, Json]] = {
    "POST /sign-in/codes": (201, {"code": "once", "seconds": 600}),
    "POST /sign-out": (200, {"signed_out": 2}),
    "GET /health": (503, {"status": "degraded", "problem": "no disk", "model": "m", "participants": [CHILD]}),
    "GET /memory?limit=20": (200, {"engrams": [ENGRAM]}),
    "GET /memory?limit=100": (200, {"engrams": [ENGRAM], "cursor": "c"}),
    "GET /memory?limit=100&cursor=c": (200, {"engrams": [{**ENGRAM, "engram_id": "ef" + "0" * 30}], "cursor": None}),
    f"DELETE /memory/{'e' * 32}": (200, {"engram_id": "e" * 32, "repeated_in": ["r1"]}),
    "GET /memory/facts?history=true": (200, {
        "facts": [FACT], "told": ["I am Ann."], "unconfirmed": [{**FACT, "slot": "pet", "fact_id": 7}]
    }),
    "POST /memory/facts/7/confirm": (200, {"fact": FACT}),
    "DELETE /memory/facts/7": (200, {"fact": FACT}),
    "GET /changes?call_id=q9": (200, {"changes": []}),
    "GET /models": (200, {"models": [
        {"name": "gemma4:12b", "server": "ollama", "size": 8_000_000_000, "path": None, "default": True},
        {"name": "tiny", "server": "llama_server", "size": None, "path": "/m/tiny.gguf", "default": False},
    ]}),
    "GET /sessions": (200, {"sessions": [ROW]}),
    "GET /sessions?limit=20": (200, {"sessions": []}),
    "GET /sessions?archived=any": (200, {"sessions": [ROW]}),
    "GET /sessions?limit=20&folder=Travel&archived=true": (200, {"sessions": [{**ROW, "folder": "T", "tags": ["a"]}]}),
    "POST /sessions/change": (200, {"results": [
        {"session_id": "s" * 32, "session": {**ROW, "folder": "Travel"}, "error": None},
        {"session_id": "t", "error": {"kind": "not_found", "message": "there is no session t"}},
    ]}),
    "GET /sessions?query=2%2B2+is&limit=20&archived=any": (200, {"sessions": [FOUND]}),
    f"GET /sessions/{'s' * 32}": (200, ROW),
    f"PATCH /sessions/{'s' * 32}": (200, {**ROW, "title": "New"}),
    f"DELETE /sessions/{'s' * 32}?versions=true": (200, {
        "session_id": "s" * 32, "deleted_turns": 2, "repeated_in": None, "copied_to": ["b1"],
    }),
    f"POST /sessions/{'s' * 32}/branch": (201, {"session_id": "b2"}),
    "POST /sessions/import?preview=true": (200, {**IMPORTED, "imported": 0}),
    "POST /sessions/import": (200, {**IMPORTED, "imported": 2}),
}  # fmt: skip

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def bodies() -> list[Json]:
    """What the frontend was sent."""
    return []


@pytest.fixture
def run(bodies: list[Json], capfd: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """Runs a command with that frontend; gives exit status, output and error output."""

    class Frontend(BaseHTTPRequestHandler):
        def answer(self) -> None:
            if length := int(self.headers.get("content-length") or 0):
                bodies.append(json.loads(self.rfile.read(length)))
            refused = (404, {"error": {"kind": "not_found", "message": f"there is no {self.path}"}})
            status, body = ANSWERS.get(f"{self.command} {self.path}", refused)
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = do_DELETE = answer

        def log_message(self, *args: object) -> None:
            pass

    def command(*arguments: str, finds: bool = True) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main([*arguments, *(["--api", url] if finds else [])])
        out, err = capfd.readouterr()
        return int(str(ended.value.code or 0)), out, err

    with ThreadingHTTPServer(("127.0.0.1", 0), Frontend) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        yield command
        server.shutdown()


def test_the_status_names_who_has_failed_and_why_and_is_1(run: Run) -> None:
    status, out, _ = run("status")
    first, problem, _, row = out.splitlines()
    assert (status, first, problem) == (1, "degraded  m", "problem: no disk")
    assert row.split() == ["critic", "agent", "failed", "-", "5", "it", "died"]
    assert json.loads(run("status", "--json")[1])["status"] == "degraded"


@pytest.mark.parametrize("command", [("status",), ("sessions", "list"), ("memory", "list"), ("tap", "graph")])
def test_where_no_system_runs_one_line_says_so(run: Run, tmp_path: Path, command: tuple[str, ...]) -> None:
    status, out, err = run(*command, "--data-dir", str(tmp_path), finds=False)
    assert (status, out) == (2, "")
    assert err == f"local2: no system runs on {tmp_path}; start one with `local2 run`\n"


def test_what_is_remembered_is_listed_on_one_line_that_controls_no_terminal(run: Run) -> None:
    assert run("memory", "list")[1].endswith("  I take my coffee \\x1b[31mblack.\n")
    assert run("memory", "list")[1].startswith("* eeeeeeee  ")
    assert json.loads(run("memory", "list", "--json")[1]) == {"engrams": [ENGRAM]}


def test_an_engram_is_named_by_the_beginning_of_its_id_if_no_other_one_begins_so(run: Run) -> None:
    status, out, _ = run("memory", "delete", "eee")
    assert (status, out.splitlines()) == (
        0, [f"{'e' * 32} is removed", "1 may repeat it, and stay until they are deleted, too:", "  r1"],
    )  # fmt: skip
    status, out, err = run("memory", "pin", "e")
    assert (status, out) == (2, "")
    assert "2 engrams begin with 'e'" in err


def test_facts_say_until_when_they_held_and_what_was_not_sure(run: Run) -> None:
    fact, *told = run("memory", "facts", "--history")[1].splitlines()
    assert "name: Ann (not sure)  (until " in fact
    assert told[:3] == ["", "in every prompt", "  I am Ann."]
    assert told[4].startswith("unconfirmed, in no prompt") and told[5].startswith("    7  ") and len(told) == 6
    assert run("memory", "confirm", "7")[1] == "name: Ann is confirmed\n"
    assert run("memory", "drop", "7")[1] == "name: Ann is removed\n"


def test_conversations_are_searched_and_one_without_a_match_is_said_on_the_error_output(run: Run) -> None:
    found, excerpt = run("sessions", "search", "2+2", "is")[1].splitlines()
    assert found.endswith("2  Sums  (1 open)")
    assert excerpt == "    q: 2+2 is"
    assert run("sessions", "list") == (0, "", "there is no conversation yet\n")
    assert run("sessions", "list", "--folder", "Travel", "--archived")[1].endswith("Sums  [T]  #a  (1 open)\n")


def test_the_models_are_those_of_the_running_system(run: Run) -> None:
    assert run("model", "list")[1] == "* gemma4:12b  ollama  8.0 GB\n  tiny  llama_server\n"


def test_a_conversation_is_named_pinned_branched_and_deleted(
    run: Run, bodies: list[Json], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("sessions", "rename", "ss", "New", "title")[1].endswith("New  (1 open)\n")
    run("sessions", "rename", "ss")
    run("sessions", "pin", "ss")
    assert run("sessions", "branch", "ss", "--before", "q7")[1] == "b2\n"
    assert bodies == [{"title": "New title"}, {"title": None}, {"pinned": True}, {"before": "q7"}]
    monkeypatch.setattr("sys.stdin", io.StringIO())
    status, out, err = run("sessions", "delete", "ss")
    assert (status, out.strip()) == (2, "") and "Sums" in err and "--yes" in err
    status, out, _ = run("sessions", "delete", "ss", "--yes")
    assert (status, out.splitlines()[1:]) == (
        0, ["whether others repeat it the memory was not there to tell", "1 branches keep copies:", "b1"],
    )  # fmt: skip


def test_bad_use_is_2_and_says_what_would_be_right(run: Run) -> None:
    assert run("sessions", "export", "ss", "--format", "pdf")[::2] == (
        2, "local2: Invalid value for --format: 'pdf' is not one of markdown, json\n",
    )  # fmt: skip
    assert "there is no /sessions/zz" in run("sessions", "pin", "zz")[2]
    assert "--verbose cannot be combined with --quiet or --json" in run("ask", "Hi", "--verbose", "--quiet")[2]


@pytest.mark.parametrize(
    ("command", "nothing"),
    [
        ("secret list", "there are no secrets"),
        ("user list", "there are no users besides you"),
        ("trust --list", "no folder is trusted"),
        ("mcp list", "there are no servers; `local2 mcp add` adds one"),
        ("logs nobody", "no line of {0}/logs/local2.log matches"),
    ],
)
def test_where_there_is_nothing_to_list_that_is_said(run: Run, tmp_path: Path, command: str, nothing: str) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/local2.log").write_text("2026-11-23 14:19:51.537 info supervisor - stopped\n")
    folders = ["--data-dir", str(tmp_path)]
    if command.split()[0] not in ("secret", "user"):
        folders += ["--config-dir", str(tmp_path)]
    assert run(*command.split(), *folders, finds=False) == (0, "", f"{nothing.format(tmp_path)}\n")


def test_a_narrow_terminal_folds_a_line_and_the_status_is_whole_on_any(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "terminal_width", lambda: 40)
    assert run("sessions", "search", "2+2", "is")[1].splitlines()[0].endswith("Sums  (1 open)")
    assert run("status")[1].splitlines()[-1].endswith("it died")


def test_a_call_whose_changes_are_not_kept_is_bad_use(run: Run) -> None:
    assert run("undo", "show", "q9") == (2, "", "local2: no change of call q9 is kept\n")


def test_which_tools_may_be_used_is_said_as_the_route_wants_it() -> None:
    assert tools_of(None, None, none=False) == {}
    assert tools_of(None, None, none=True) == {"allow": []}
    assert tools_of(["a"], ["b"], none=False) == {"allow": ["a"], "deny": ["b"]}
    with pytest.raises(BadQuestion, match="--no-tools cannot be combined"):
        tools_of(["a"], None, none=True)


def test_the_version_is_told(run: Run) -> None:
    status, out, _ = run("--version", finds=False)
    assert (status, out.startswith("local2 0.")) == (0, True)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_a_script_that_asks_for_completions(run: Run, shell: str) -> None:
    status, out, _ = run("completion", shell, finds=False)
    assert (status, f"_LOCAL2_COMPLETE=complete_{shell}" in out) == (0, True)
    assert run("completion", "tcsh", finds=False)[0] == 2


def test_the_tab_key_completes_commands_of_a_group(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_LOCAL2_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "local2 memory p")
    monkeypatch.setenv("COMP_CWORD", "2")
    assert run(finds=False)[:2] == (0, "pin\n")


@pytest.mark.parametrize("command", [("ask", "Hi", "--no-start"), ("memory", "list")])
def test_what_talks_http_alone_imports_no_model_of_messages_and_no_event_loop(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    heavy = {"asyncio", "httpx", "importlib.metadata", "prompt_toolkit", "pydantic", "rich.console", "yaml", "zmq"}
    arguments = [*command, "--data-dir", str(tmp_path)]
    program = f"import atexit, sys; atexit.register(lambda: print({heavy} & set(sys.modules)))\n"
    program += f"from local.cli.entry import main; main({arguments})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert "no system runs" in done.stderr
    assert done.stdout == "set()\n"


def test_a_start_that_fails_because_another_system_begins_leaves_that_one_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    refused = tmp_path / "python"  # stands for a start that finds the lock taken
    refused.write_text("#!/bin/sh\necho 'a system runs on it already' >&2\nexit 2\n")
    refused.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(refused))
    directory = RunDirectory(tmp_path)
    with directory.lock():
        with pytest.raises(SystemDidNotStart, match="already"), TemporarySystem(tmp_path):
            pass
        assert directory.path.exists()
    with pytest.raises(SystemDidNotStart), TemporarySystem(tmp_path):
        pass
    assert not directory.path.exists()


def test_the_help_has_every_command_below_a_heading_and_imports_none(run: Run) -> None:
    program = "import sys; from local.cli.entry import main\ntry: main(['--help'])\nfinally: print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    shown, _, imported = done.stdout.rstrip("\n").rpartition("\n")
    assert "\nAgents and schedules:\n  agents " in shown
    assert {line.split()[0] for line in shown.splitlines() if line.startswith("  ")} > COMMANDS.keys()
    assert not {"local.cron.commands", "pydantic", "asyncio"} & set(imported.split())
    assert {target for each in COMMANDS.values() if not resolved(target := each.target)} == set()


def resolved(target: str) -> bool:
    module, _, attribute = target.partition(":")
    return hasattr(importlib.import_module(module), attribute)


def test_an_earlier_name_a_plural_and_help_lead_to_the_command(run: Run) -> None:
    for words, usage in (
        (("pull", "--help"), "local2 model pull "),
        (("memorys", "--help"), "local2 memory "),
        (("session", "list", "--help"), "local2 sessions list "),
        (("help", "session", "list"), "local2 sessions list "),
        (("model",), "local2 model "),
    ):
        status, out, _ = run(*words, finds=False)
        assert (status, out.startswith(f"Usage: {usage}")) == (0, True), words


def test_a_command_that_there_is_not_is_bad_use_and_the_nearest_one_is_named(run: Run) -> None:
    assert run("staus", finds=False)[::2] == (
        2, "local2: there is no command 'staus'; did you mean `local2 status` or `local2 trust`?\n",
    )  # fmt: skip
    assert "`local2 --help` lists the commands" in run("xyzzy", finds=False)[2]
    assert "Did you mean 'list'" in run("cron", "lst", finds=False)[2]


def test_the_page_is_opened_in_a_browser_signed_in_and_no_system_is_started_for_it(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: bool(opened.append(url)) or len(opened) == 1)
    status, out, _ = run("open")
    address, _, code = opened[0].partition("#")
    assert (status, out, code) == (0, f"opened {address}\n", "code=once")  # and the code is not printed
    status, _, err = run("open")
    assert status == 2 and f"open {address} in one yourself" in err and "once" not in err
    status, _, err = run("open", "--data-dir", str(tmp_path), finds=False)
    assert (status, err) == (2, f"local2: no system runs on {tmp_path}; start one with `local2 run`\n")
    assert len(opened) == 2
    assert run("code")[:2] == (0, "once\n")
    assert run("code", "--sign-out")[:2] == (0, "2 browsers were signed out\n")


def test_several_conversations_are_changed_and_what_failed_is_named(run: Run, bodies: list[Json]) -> None:
    status, out, err = run("sessions", "move", "ss", "t", "--folder", "Travel")
    assert (status, out.endswith("Sums  [Travel]  (1 open)\n")) == (2, True)
    assert "there is no session t" in err
    assert bodies[-1] == {"session_ids": ["s" * 32, "t"], "folder": "Travel"}
    run("sessions", "tag", "ss", "--add", "a", "--remove", "b")
    assert bodies[-1] == {"session_ids": ["s" * 32], "add_tags": ["a"], "remove_tags": ["b"]}
    run("sessions", "archive", "ss")
    assert bodies[-1]["archived"] is True
    assert run("sessions", "tag", "ss")[0] == 2


def test_a_file_is_imported_after_it_was_said_how_many_conversations_it_has(
    run: Run, tmp_path: Path, bodies: list[Json]
) -> None:
    file = tmp_path / "conversations.json"
    file.write_text("[1]")
    status, out, _ = run("sessions", "import", str(file), "--yes")
    assert (status, bodies) == (0, [[1], [1]])
    first, *titles, left_out, again, done = out.splitlines()
    assert first == "2 conversations from ChatGPT with 7 questions; 1 of 3 are here already"
    assert titles == ["  Tea\\x1b[31m (5)", "  untitled (2)"]
    assert left_out == again == "  left out: Empty: there is no question in it"
    assert done == "imported: 2 conversations"
    status, _, err = run("sessions", "import", str(tmp_path / "nowhere.json"))
    assert (status, "cannot be read: No such file" in err) == (2, True)

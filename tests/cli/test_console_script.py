"""The command that is told to stop while it imports what it needs, or has not all of its streams."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import local
from local.cli.main import exit_status, new_app

# An importer that sends the signal when typer is asked for.
TOLD = """
import os, runpy, sys

class Teller:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            os.kill(os.getpid(), int(sys.argv[1]))

sys.meta_path.insert(0, Teller())
"""
AS_INSTALLED = """
from local.cli.console_script import main
from local.core.setup import PythonEnvironment
PythonEnvironment.is_entered = True
main()
"""


def test_an_environment_of_another_tool_without_our_packages_is_refused_with_what_to_do(tmp_path: Path) -> None:
    """As `python -m venv .venv`, `pip install -e .` and `uv sync` make it."""
    folder = tmp_path / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True, timeout=60)
    code = (
        f"import sys; sys.path.insert(0, {str(Path(local.__file__).parents[1])!r})\n"
        "from local.core.setup import PythonEnvironment\n"
        "PythonEnvironment.is_entered, PythonEnvironment.is_ours = True, False\n"
        "from local.cli.console_script import main\n"
        "main()\n"
    )
    started = [folder / "bin" / "python", "-I", "-c", code]
    ended = subprocess.run(started, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode != 0 and "Traceback" not in ended.stderr
    assert "run_local.py" in ended.stderr


@pytest.mark.parametrize("closed", [0, 2])
def test_a_stream_that_was_closed_brings_no_traceback(closed: int, tmp_path: Path) -> None:
    question = ["ask", "Hi", "--no-start", "--data-dir", str(tmp_path)]
    command = [sys.executable, "-m", "local.cli.entry", *question]
    ended = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
        preexec_fn=lambda: os.close(closed),
    )  # fmt: skip
    told = "" if closed == 2 else f"local2: no system runs on {tmp_path}; start one with `local2 run`\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (75, "", told)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has it")
def test_an_output_that_cannot_be_written_is_one_line_and_no_traceback() -> None:
    command = [sys.executable, "-m", "local.cli.entry", "completion", "bash"]
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    told = "local2: the output cannot be written: No space left on device\n"
    assert (ended.returncode, ended.stderr) == (2, told)


def test_a_question_that_nobody_can_answer_is_an_error_of_one_line(tmp_path: Path) -> None:
    (tmp_path / "models.yaml").write_text("providers:\n  llama_server: {kind: llama_server, program: /nowhere/it}\n")
    places = ["--config-dir", str(tmp_path), "--data-dir", str(tmp_path / "data")]
    command = [sys.executable, "-m", "local.cli.entry", "model", "try", *places]
    ended = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
    )  # fmt: skip
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-1].startswith("local2: ") and "--yes" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_ctrl_c_ends_a_command_without_a_traceback() -> None:
    app = new_app()

    @app.command()
    def interrupted() -> None:
        raise KeyboardInterrupt

    assert exit_status(app, [], "local2") == 130


def test_a_command_that_is_interrupted_while_it_imports_ends_without_a_traceback() -> None:
    command = [sys.executable, "-c", TOLD + AS_INSTALLED, str(int(signal.SIGINT))]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's `&` has it ignored
    )  # fmt: skip
    assert (ended.returncode, ended.stderr + ended.stdout) == (-signal.SIGINT, "")


def test_it_ends_so_too_while_it_imports_what_one_command_needs() -> None:
    code = (
        "import os, signal, sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name.startswith('local.cli.tap'): os.kill(os.getpid(), signal.SIGINT)\n"
        "signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "from local.cli.entry import main\n"
        "main(['tap', 'list'])\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr + ended.stdout) == (-signal.SIGINT, "")

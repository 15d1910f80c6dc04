"""What the template leaves behind when its supervisor is killed."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from local.runtime.template import FOLDERS, clear_folders

# The template has begun when it has started a child.
STARTED = """
import multiprocessing
from local.runtime.template import prepare_template
prepare_template([])
child = multiprocessing.get_context("forkserver").Process(target=int)
child.start()
child.join()
print("ready", flush=True)
input()
"""
FORKED = STARTED.replace("template import prepare_template", "template_fork import fork_template as prepare_template")


@pytest.fixture(params=[STARTED, FORKED], ids=["started", "forked"])
def program(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """One that has a template, with its temporary files in a folder of its own."""
    with subprocess.Popen(
        [sys.executable, "-c", request.param], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def test_the_folder_of_a_killed_program_is_cleared_and_no_other(program: subprocess.Popen[str], tmp_path: Path) -> None:
    [ours] = tmp_path.glob(FOLDERS)
    (tmp_path / "pymp-others").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "pymp-others" / "listener-1"))
    assert clear_folders(tmp_path) == 0
    assert ours.is_dir()
    program.kill()
    program.wait()
    assert clear_folders(tmp_path) == 1, "the template holds it, too"
    assert [path.name for path in tmp_path.iterdir()] == ["pymp-others"]


def test_the_template_is_the_only_process_that_comes_with_it(program: subprocess.Popen[str]) -> None:
    assert len(psutil.Process(program.pid).children(recursive=True)) == 1


def test_the_template_ends_with_its_program(program: subprocess.Popen[str]) -> None:
    [template] = psutil.Process(program.pid).children()
    program.kill()
    program.wait()
    template.wait(timeout=30)

"""What a template has of the program that it was forked from, and what it has not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """
import json, os, signal, sys
from multiprocessing import forkserver
from pathlib import Path

import local.core.files
from local.runtime.template import prepare_template
from local.runtime.template_fork import fork_template

def told():
    process = prepare_template(["local.core.files"]).Process(target=exec, args=(LOOK, {}))
    process.start()
    process.join()
    return json.loads(Path(sys.argv[2]).read_text())

local.core.files.mark = "of the program"
LOOK = sys.argv[3].replace("FILE", str(os.open(sys.argv[1], os.O_RDONLY)))
fork_template(["local.core.files"])
first, pid = told(), forkserver._forkserver._forkserver_pid
os.kill(pid, signal.SIGKILL)
os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
print(json.dumps({"first": first, "forked": pid, "second": told()}))
"""
LOOK = """
import gc, json, os, sys
from contextlib import suppress
from multiprocessing import forkserver
from pathlib import Path

import local.core.files

has_file = False
with suppress(OSError):
    has_file = os.read(FILE, 8) == b"a secret"
Path(sys.argv[2]).write_text(json.dumps({
    "mark": getattr(local.core.files, "mark", None), "preloaded": "local.core.files" in sys.modules,
    "has_file": has_file,
    "frozen": gc.get_freeze_count(), "parent": os.getppid(), "locked": forkserver._forkserver._lock.locked(),
}))
"""


@pytest.fixture
def told(tmp_path: Path) -> dict[str, Any]:
    """What a child of the forked template has seen, and one of the template that took its place."""
    (tmp_path / "secret").write_text("a secret")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "secret"), str(tmp_path / "told.json"), LOOK],
        env={**os.environ, "TMPDIR": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    seen: dict[str, Any] = json.loads(done.stdout)
    return seen


def test_it_has_what_the_program_has_imported_and_none_of_its_files(told: dict[str, Any]) -> None:
    first = told["first"]
    assert (first["mark"], first["preloaded"], first["parent"]) == ("of the program", True, told["forked"])
    assert first["frozen"] > 0
    assert (first["has_file"], first["locked"]) == (False, False)


def test_one_that_was_killed_is_followed_by_one_that_imports_for_itself(told: dict[str, Any]) -> None:
    second = told["second"]
    assert (second["mark"], second["preloaded"]) == (None, True)
    assert second["parent"] != told["forked"]

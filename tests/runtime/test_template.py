"""The template that children are forked from: what it has of its program, and what becomes of it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from local.runtime import template
from local.runtime.template import TemplateProcess

PROGRAM = """
import asyncio, json, os, signal, sys, time
from pathlib import Path

import local.core.files
from local.runtime import template
from local.runtime.supervisor import ChildSpec, Supervisor
from local.runtime.template import fork_template

secret = os.open(sys.argv[1], os.O_RDONLY)
local.core.files.mark = "of the program"
fork_template()

def told():
    async def child():
        looker = ChildSpec("looker", "tool", "looker:look", (secret, sys.argv[2]), required=False)
        async with Supervisor([looker], preload=["local.core.files", "a_module_that_is_not_there"]) as supervisor:
            await supervisor.wait_until(lambda children: children[0].restarts or children[0].state == "failed")
    asyncio.run(child())
    return json.loads(Path(sys.argv[2]).read_text())

first, forked, spare = told(), template._current.pid, template._spare.pid
os.kill(forked, signal.SIGKILL)
second = told()
os.kill(spare, signal.SIGSTOP)
begun = time.monotonic()
third, seconds = told(), time.monotonic() - begun
third_of = template._current.pid
for each in (template._current, template._spare):
    os.kill(each.pid, signal.SIGKILL)
fourth = told()
print(json.dumps({"first": first, "forked": forked, "second": second, "spare": spare, "third": third,
    "third_of": third_of, "fourth": fourth, "seconds": seconds,
    "new": [template._current.pid, template._spare.pid]}), flush=True)
input()
"""
LOOKER = """
import gc, json, os, sys
from contextlib import suppress
from pathlib import Path

import local.core.files
from local.core.errors import ConfigError

def look(_, secret, answer):
    has_file = False
    with suppress(OSError):
        has_file = os.read(secret, 8) == b"a secret"
    Path(answer).write_text(json.dumps({
        "mark": getattr(local.core.files, "mark", None), "has_file": has_file, "frozen": gc.get_freeze_count(),
        "parent": os.getppid(),
    }))
    raise ConfigError("looked")
"""


def test_a_template_has_what_its_program_has_imported_and_none_of_its_files_and_ends_with_it(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("a secret")
    (tmp_path / "looker.py").write_text(LOOKER)
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "secret"), str(tmp_path / "told.json")],
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as program:  # fmt: skip
        assert program.stdout is not None and program.stderr is not None
        told: dict[str, Any] = json.loads(program.stdout.readline())
        templates = [psutil.Process(pid) for pid in told["new"]]
        program.kill()
        psutil.wait_procs(templates, timeout=90)
        errors = program.stderr.read()
    first, second, third = told["first"], told["second"], told["third"]
    assert (first["mark"], first["has_file"], first["parent"]) == ("of the program", False, told["forked"])
    assert first["frozen"] > 0
    assert (second["mark"], second["parent"]) == ("of the program", told["spare"])
    # by the spare that the stopped one had forked
    assert (third["mark"], third["parent"]) == ("of the program", told["third_of"])
    assert (told["fourth"]["mark"], told["fourth"]["parent"]) == (None, told["new"][0])
    assert told["seconds"] < 30  # one second for the one that is stopped, and no imports
    assert len(set(told["new"])) == 2
    assert not any(each.is_running() and each.status() != psutil.STATUS_ZOMBIE for each in templates)
    assert "a_module_that_is_not_there" in errors and "Traceback" not in errors


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nobody tells how a process is")
def test_a_template_that_does_not_tell_how_a_child_ended_is_given_up_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is at work has a second, one that sleeps a quarter of it. None has the time of a child that lives on."""
    monkeypatch.setattr(template, "REAP_SECONDS", 0.1)
    ours, silent = socket.socketpair()
    wait = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()"]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with ours, silent, subprocess.Popen(wait, **pipes) as asleep, subprocess.Popen(wait, **pipes) as child:
        assert asleep.stdout is not None and child.stdin is not None
        asleep.stdout.readline()
        child.stdin.close()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        seconds = []
        for pid in (os.getpid(), asleep.pid):
            begun = time.monotonic()
            known = TemplateProcess(pid, ours)
            known._has_answered = True
            with pytest.raises(TimeoutError):
                known.reap(child.pid)
            seconds.append(time.monotonic() - begun)
            monkeypatch.setattr(template, "REAP_SECONDS", 20.0)
        assert max(seconds) < template.KILLED_SECONDS / 2

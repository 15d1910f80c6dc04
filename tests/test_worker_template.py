"""Whoever runs tests beside others is a fork of a process that has imported them."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.workers.worker_template import WorkerTemplate

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers are forks on Linux alone")
WORKER = """
import os, sys
print(input(), __name__, "tests.test_architecture" in sys.modules, os.getppid())
print("wrong", file=sys.stderr)
"""


def test_a_worker_has_imported_the_tests_and_has_the_streams_of_whoever_started_it() -> None:
    template = WorkerTemplate([str(Path(__file__).with_name("test_architecture.py"))])
    try:
        command = [*shlex.split(template.python), "-u", "-c", WORKER]
        ended = [subprocess.run(command, input=word, capture_output=True, text=True) for word in ("one", "two")]
    finally:
        template.close()
    said = [each.stdout.split() for each in ended]
    assert [words[:3] for words in said] == [[word, "__main__", "True"] for word in ("one", "two")]
    assert said[0][3] == said[1][3], "of one process"
    assert [(each.stderr, each.returncode) for each in ended] == [("wrong\n", 0)] * 2

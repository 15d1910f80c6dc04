"""The process that the suite's workers are forks of, as the one that gives them their tests sees it."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent


class WorkerTemplate:
    """A process that has collected `arguments` as pytest does, and of which workers are forked: `is_ready` says whether
    it could. After its end no more workers can be started; those that there are stay."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="workers-"))
        program, orders = str(HERE / "program.py"), str(self._folder / "orders")
        self.python = shlex.join([sys.executable, "-E", "-S", str(HERE / "worker.py"), orders])
        self._process = subprocess.Popen(
            [sys.executable, program, orders], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdin and self._process.stdout
        print(json.dumps({"path": sys.path, "collect": list(arguments)}), file=self._process.stdin, flush=True)
        self.is_ready = bool(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()
        shutil.rmtree(self._folder)

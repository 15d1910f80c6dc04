"""A temporary LoCAL2 in separate processes, for the time of a `with` block: for stories, tests and measurements."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import yaml

from local.core.data_dir import FILES, RunDirectory, RunInfo, clear_unheld
from local.core.errors import LocalError

READY_LINE = "LoCAL2 is ready"
START_SECONDS = 60.0
STOP_SECONDS = 15.0


class SystemDidNotStart(LocalError):
    """A temporary system that has ended immediately, or was not ready in time."""

    kind = "start_failed"


class TemporarySystem:
    """A system started by `local2 run --headless --api` on a free port. It is ready inside the `with` block;
    afterwards all its processes have ended. It ends with this process, however that ends.

    `log` is its output so far, line by line. Its processes are the ones of session `process.pid`.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        config_dir: Path | None = None,
        flags: Sequence[str] = (),
        start_seconds: float = START_SECONDS,
    ) -> None:
        """The system has `start_seconds` to become ready."""
        self._start_seconds = start_seconds
        self.data_dir = data_dir.resolve()
        self.log: list[str] = []
        self._flags = [*flags, *(["--config-dir", str(config_dir)] if config_dir else [])]
        self._told = threading.Event()
        self.process: subprocess.Popen[str]
        self.facts: RunInfo

    def __enter__(self) -> Self:
        """Raises `SystemDidNotStart`."""
        arguments = ["run", "--headless", "--api", "--api-port", "0", "--data-dir", str(self.data_dir), *self._flags]
        seen, self._held = os.pipe()
        self.process = self.begin([*arguments, "--starter", str(seen)], seen)
        os.close(seen)
        self._reader = threading.Thread(target=self._read, name="log of the system", daemon=True)
        self._reader.start()
        try:
            self._wait_until_ready()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._end()

    def begin(self, arguments: Sequence[str], starter: int) -> subprocess.Popen[str]:
        """Start `local2` with these arguments: in a new session, with a pipe for its output, and the pipe `starter`
        open in it under the same number.
        """
        return subprocess.Popen(
            [sys.executable, "-m", "local.cli.entry", *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True, pass_fds=(starter,),
        )  # fmt: skip

    @property
    def api_url(self) -> str:
        """The address at which the system answers over HTTP."""
        return self.facts.api_url or ""

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and wait for the end; returns the exit status, negative if a signal ended it."""
        self.process.send_signal(number)
        return self.process.wait(STOP_SECONDS)

    def _wait_until_ready(self) -> None:
        if not self._told.wait(self._start_seconds):
            raise SystemDidNotStart(f"the system was not ready within {self._start_seconds:g} s; {self._last_words()}")
        if not any(READY_LINE in line for line in self.log):
            raise SystemDidNotStart(f"the system did not start; {self._last_words()}")
        self.facts = RunDirectory(self.data_dir).read()

    def _last_words(self) -> str:
        return f"it said: {' | '.join(self.log[-3:])}" if self.log else "it said nothing"

    def _read(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as stderr:
            for line in stderr:
                self.log.append(line.rstrip("\n"))
                if READY_LINE in line:
                    self._told.set()
        self._told.set()

    def _end(self) -> None:
        with suppress(subprocess.TimeoutExpired):
            self.end()
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)  # everything that did not end by itself
        self.process.wait()
        os.close(self._held)
        self._reader.join(STOP_SECONDS)
        clear_unheld(RunDirectory(self.data_dir).path, FILES)  # another system may run there by now


def write_settings(folder: Path, settings: Mapping[str, Mapping[str, Any]]) -> Path:
    """Write each `name: {key: value}` to `name.yaml` in a folder, which is made if necessary; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, values in settings.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(dict(values)), encoding="utf-8")
    return folder

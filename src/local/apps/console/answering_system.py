"""The system that answers: the one that runs on the data directory, or else one that is started for a while."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Self

from local.apps.data_dir_lock import holder
from local.apps.owner_token import owner_token
from local.apps.run_directory import NotRunning, RunDirectory
from local.apps.system_client import SystemClient
from local.apps.terminal import visible
from local.environment import data_dir
from local.errors import LocalError, NoAnswer, NoApi

LOOK_SECONDS = 0.05  # between two looks at a system that somebody else is starting


def running_system(api: str | None, directory: Path | None) -> SystemClient:
    """A hold on the system that runs at that address, else on that data directory. Raises `NotRunning`, `NoApi`."""
    return AnsweringSystem(api, directory, may_start=False).find()


class AnsweringSystem:
    """Found by its address, or by its data directory each time anew: it may have been started again elsewhere. Use as
    `with`: a system that was started for us ends with it."""

    def __init__(
        self, api: str | None, directory: Path | None, *, may_start: bool, flags: Sequence[str] = (),
        workspace: Path | None = None,
    ) -> None:  # fmt: skip
        """`flags` and the `workspace` are for a system that is started; one that runs and works elsewhere is told."""
        self._api, self._directory, self._may_start, self._flags = api, data_dir(directory), may_start, flags
        self._workspace, self._has_told = workspace, False
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def find(self) -> SystemClient:
        """A hold on the system as it is now. Raises `NotRunning`, `NoApi`, `SystemDidNotStart`."""
        if self._api is not None:
            return SystemClient(self._api)
        try:
            return self._running()
        except NotRunning:
            if not self._may_start:
                raise
        self._start()
        return self._running()

    def find_again(self) -> SystemClient:
        """As `find`, of a system that was there: it comes back, or its owner starts it again. Raises `NoAnswer`."""
        try:
            return self.find()
        except LocalError as error:
            raise NoAnswer("unreachable", str(error)) from None

    def _running(self) -> SystemClient:
        facts = RunDirectory(self._directory).facts()
        if facts.api_url is None:
            raise NoApi(f"the system on {self._directory} serves no HTTP API; start it with --api")
        self._tell_workspace(facts.workspace)
        return SystemClient(facts.api_url, owner_token(self._directory))

    def _tell_workspace(self, used: str) -> None:
        if self._workspace is None or used == str(self._workspace) or self._has_told:
            return
        self._has_told = True
        line = f"the running system works in {used}, not in this folder: `local2 run --workspace .` would"
        print(visible(line), file=sys.stderr)  # noqa: T201

    def _start(self) -> None:
        from local.apps.temporary_system import START_SECONDS, SystemDidNotStart, TemporarySystem  # few questions do

        print("starting LoCAL2 …", file=sys.stderr)  # noqa: T201
        flags = [*self._flags, *(["--workspace", str(self._workspace)] if self._workspace else [])]
        try:
            self._stack.enter_context(TemporarySystem(self._directory, flags=flags))
        except SystemDidNotStart:
            if not self._is_started_elsewhere(time.monotonic() + START_SECONDS):
                raise

    def _is_started_elsewhere(self, until: float) -> bool:
        """Whether a system runs here that somebody else was starting: it is waited for while its process lives."""
        while holder(self._directory) is not None and time.monotonic() < until:
            with suppress(NotRunning):
                RunDirectory(self._directory).facts()
                return True
            time.sleep(LOOK_SECONDS)
        return False

"""Whether the system that is tapped still runs, in words, at each change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from local.apps.run_directory import Facts, RunDirectory
from local.bus.address import BusAddress
from local.errors import LocalError

LOOK_SECONDS = 1.0
STOPPED = "the system has stopped; waiting for it to come back (Ctrl-C ends this)"
ELSEWHERE = "the system is back on another bus, which this does not hear: start it again"


class SystemWatch:
    """Looks at what a running system tells of itself, at the same place before and after a restart."""

    def __init__(self, directory: RunDirectory, address: BusAddress) -> None:
        self._directory, self._address = directory, address
        self._pid = self._facts_pid()

    def news(self) -> str:
        """What has changed since the last call; empty if nothing has."""
        before, self._pid = self._pid, self._facts_pid()
        if self._pid == before:
            return ""
        if self._pid is None:
            return STOPPED
        return f"the system is back (process {self._pid})" if self._is_heard() else ELSEWHERE

    async def tell(self, say: Callable[[str], object]) -> None:
        """Say what is new, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if news := self.news():
                say(news)

    def _facts_pid(self) -> int | None:
        facts = self._facts()
        return facts.pid if facts else None

    def _is_heard(self) -> bool:
        facts = self._facts()
        ours = (self._address.publish_to, self._address.subscribe_to)
        return facts is not None and (facts.publish_to, facts.subscribe_to) == ours

    def _facts(self) -> Facts | None:
        try:
            return self._directory.facts()
        except LocalError:
            return None

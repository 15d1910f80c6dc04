"""Who is killed while a question of a story is answered: by `kill -9`, as soon as something has been said."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from local.apps.story import Awaited
from local.apps.story_checks import Check, says
from local.apps.system_client import SystemClient

Json = dict[str, Any]


class StoryDeaths:
    """`kills` has, by participant, the message that its process is to die of, which has `seconds` to come."""

    def __init__(self, client: SystemClient, kills: Mapping[str, Awaited], seconds: float) -> None:
        self._client, self._kills, self._seconds = client, kills, seconds
        self.checks: list[Check] = []

    @contextmanager
    def happening(self) -> Iterator[None]:
        """Listen while the block is done; then `checks` say who was killed."""
        if not self._kills:
            yield
            return
        subjects = list(dict.fromkeys(each.subject for each in self._kills.values()))
        with self._client.follow(subjects, self._seconds) as envelopes, ThreadPoolExecutor(1) as thread:
            killing = thread.submit(self._kill, envelopes)
            yield
            self.checks = killing.result()

    def _kill(self, envelopes: Iterator[Json]) -> list[Check]:
        alive, checks = dict(self._kills), list[Check]()
        while alive and (envelope := next(envelopes, None)) is not None:
            for name, when in list(alive.items()):
                if when.subject == envelope["subject"] and says(when, envelope["payload"]):
                    checks.append(self._kill_now(name))
                    del alive[name]
        return [*checks, *(Check(False, f"{name} is killed", "it has not come to that") for name in alive)]

    def _kill_now(self, name: str) -> Check:
        rows = self._client.request("GET", "/participants")["participants"]
        pids = [row["pid"] for row in rows if row["name"] == name and row.get("pid")]
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        return Check(bool(pids), f"{name} is killed", ", ".join(map(str, pids)) or "it does not run")

"""The system under test: a whole LoCAL2 with the stamp tool and the witness, and with every failpoint ready."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx
import psutil

from chaos_harness.sightings import Sighting, Sightings
from local.cli.temporary_system import TemporarySystem, write_settings
from local.core.failpoints import NAMES, SIGNALS, VARIABLE
from local.runtime.supervisor import EARLY_SECONDS

HANG_SECONDS = 1.0
START_SECONDS = 0.5  # at most, from a fork to being ready
STRIKES_IN_A_ROW = 3
TITLE = "local2 "
VICTIMS = ("proxy", "journal", "generator", "gatekeeper", "stamp", "witness", "api")
TEMPLATE = "template"  # with its spare: random runs hit the older one
OBSERVERS = ("memory", "critic", "reward", "generator_b")
SWARM = "swarm"
ARBITER = "arbiter"  # for without one they do not wait for users
PERSON = "chaos_harness.person:Person"
STAMP, WITNESS = "chaos_harness.stamp:StampTool", "chaos_harness.witness:Witness"
FOR_EVER = 1_000_000_000


class ChaosSystem:
    """Enter it to start everything.

    `hang_seconds` is how long a frozen process is left alone, `model_seconds` how long the model takes before it
    answers, so that turns are under way when somebody dies; `lossy` switches the journal's protection off. With
    `observed` the memory, the critic, the reward service and the second respondent take part, too, with `agents` the
    swarm. `log` is the address of the journal's log, for a system that other machines continue.
    """

    def __init__(
        self,
        folder: Path,
        *,
        hang_seconds: float = HANG_SECONDS,
        model_seconds: float = 0.02,
        lossy: bool = False,
        observed: bool = False,
        agents: bool = False,
        log: str = "",
    ) -> None:
        self.hang_seconds, self._model_seconds = hang_seconds, model_seconds
        self._folder, self._lossy, self.observed = folder, lossy, observed
        others = (ARBITER, *(OBSERVERS if observed else ()), *((SWARM,) if agents else ()))
        self._others = others if observed or agents else ()
        self._names = (*VICTIMS, *self._others)
        self._tokens = folder / "tokens"
        self._tokens.mkdir(parents=True)
        self._effects, self._store = folder / "effects.log", folder / "witness.db"
        self._effects.touch()
        self._strikes: Counter[str] = Counter()
        self._seen_since: dict[int, float] = {}  # by process; when it was forked is known to the wall clock only
        offered = {"generator": {"offer": {"add": ["delegate_task"]}}} if agents else {}  # else to larger models only
        cell = {"journal": {"log": log}} if log else {}
        self._config = write_settings(folder / "config", {"system": self._settings(), **offered, **cell})
        self._system = TemporarySystem(folder / "data", config_dir=self._config, flags=["--log-level", "warning"])

    def __enter__(self) -> Self:
        """Raises `SystemDidNotStart`, and `KeyError` for a victim that is not there: it would never be hit."""
        with _environment(VARIABLE, self._failpoints()):
            self._system.__enter__()
        if absent := set(self._names) - self.victims().keys():
            self._system.__exit__(None, None, None)
            raise KeyError(f"no process is called {', '.join(sorted(absent))}")
        slow = {"kind": "first_token_delay", "seconds": self._model_seconds, "times": FOR_EVER}
        model = f"{self._system.facts.model_url}/stand_in/fault"
        httpx.post(model, json=slow, trust_env=False).raise_for_status()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._system.__exit__(kind, error, trace)

    @property
    def api_url(self) -> str:
        """Where its users ask."""
        return self._system.api_url

    @property
    def model_url(self) -> str:
        """Where the stand-in is told what to say."""
        return self._system.facts.model_url

    @property
    def log(self) -> Sequence[str]:
        """What it has logged."""
        return self._system.log

    @property
    def config(self) -> Path:
        """Where its settings are."""
        return self._config

    @property
    def data_dir(self) -> Path:
        """Where it keeps its files."""
        return self._system.data_dir

    def victims(self) -> dict[str, psutil.Process]:
        """The processes that may be hit, as far as they run now, by the names in their titles."""
        return self._running(self._names)

    def _running(self, names: Collection[str]) -> dict[str, psutil.Process]:
        found: dict[str, psutil.Process] = {}
        for process in psutil.process_iter():  # by the session: they lose their parent when the template dies
            with suppress(psutil.NoSuchProcess, psutil.ZombieProcess, ProcessLookupError):
                if os.getsid(process.pid) != self._system.process.pid:
                    continue
                title = "".join(process.cmdline()).strip().removeprefix(TITLE)
                for name in set(names).intersection(title.split("+")):
                    if name != TEMPLATE or name not in found:
                        found[name] = process
                    self._seen_since.setdefault(process.pid, time.monotonic())
        return found

    def bears_a_strike(self, name: str) -> bool:
        """Whether the supervisor will go on with a process that is struck now, however the strikes before it went.

        It gives up one that dies five times soon after its start, so every third strike hits one that has lived.
        """
        return self._bears(name, self.victims().get(name))

    def victims_that_bear_it(self) -> dict[str, psutil.Process]:
        """Those of them that bear a strike now, and the template."""
        running = self._running((*self._names, TEMPLATE))
        return {name: process for name, process in running.items() if self._bears(name, process)}

    def _bears(self, name: str, process: psutil.Process | None) -> bool:
        if self._strikes[name] % STRIKES_IN_A_ROW != STRIKES_IN_A_ROW - 1 or process is None:
            return process is not None
        return time.monotonic() - self._seen_since[process.pid] > EARLY_SECONDS + START_SECONDS

    def count_strike(self, name: str) -> None:
        """A process is about to be struck."""
        self._strikes[name] += 1

    def arm(self, failpoint: str, action: str) -> Path:
        """Strike whoever reaches the failpoint next; the file given is gone as soon as somebody has."""
        token = self._token(failpoint, action)
        token.touch()
        return token

    def disarm(self, token: Path) -> None:
        """Let whoever reaches it pass again."""
        token.unlink(missing_ok=True)

    @asynccontextmanager
    async def replacement(self, target: str, frozen: Collection[int]) -> AsyncIterator[None]:
        """A second process of the same participant, by hand, while the first says nothing. It serves when this is
        entered, or waits for the first one, which was frozen in the middle of a commit; where all is slow, the
        supervisor has put another one in the place of the `frozen`, process ids, before."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "local.run.participant", target),
            *("--data-dir", self._system.data_dir, "--config-dir", self._config),
            stderr=asyncio.subprocess.PIPE,
        )
        assert process.stderr is not None
        said = b""
        try:
            async for line in process.stderr:
                said += line
                if b" serves " in line or b" opening waits: " in line:
                    break
            else:
                served_by = re.search(rb"is already running \(process (\d+)\)", said)
                if served_by is None or int(served_by[1]) in frozen:
                    raise AssertionError(f"the replacement has ended instead of serving: {said.decode()}")
            yield
        finally:
            with suppress(ProcessLookupError):
                process.kill()  # a goodbye would say that the tool has gone, which its other process has not
            await process.communicate()

    def effects(self) -> list[str]:
        """The lines that the stamp tool has left."""
        return self._effects.read_text(encoding="utf-8").splitlines()

    def seen(self) -> list[Sighting]:
        """What the witness has seen."""
        with Sightings(self._store) as store:
            return store.all()

    def _settings(self) -> dict[str, object]:
        parts = [
            "generator",
            "gatekeeper",
            PERSON,
            {STAMP: {"log": str(self._effects)}},
            {WITNESS: {"store": str(self._store)}},
        ]
        return {
            "backend": "stand_in",
            "hang_seconds": self.hang_seconds,
            "python_path": [str(Path(__file__).parents[1])],
            "participants": [*self._others, *parts],
        }

    def _failpoints(self) -> str:
        armed = [f"{name}={action}@{self._token(name, action)}" for name in sorted(NAMES) for action in SIGNALS]
        return ",".join([*armed, *(["lossy=on"] if self._lossy else [])])

    def _token(self, failpoint: str, action: str) -> Path:
        return self._tokens / f"{failpoint}.{action}"


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    """What is started inside inherits the variable."""
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]

"""Failpoints: named places in the code where a test can have the process that gets there killed or frozen.

Armed by the environment variable LOCAL2_FAILPOINTS alone, for instance with
`journal.committed=kill@/tmp/a,tool.after_run=freeze@/tmp/b#3`. An entry fires for the process that removes its token
file: once each time the file is created, over all restarts. With `#3` a process passes three times while the file
exists, and is struck at the fourth. `lossy=on` is the negative control: delivery without its protection.
"""

from __future__ import annotations

import os
import re
import signal
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from local.core.config_file import suggestion
from local.core.environment import environment
from local.core.errors import ConfigError

NAMES = frozenset(
    {
        "api.before_publish",  # the request is read, nothing is published
        "api.query_committed",  # before the 202 or the first byte
        "api.answer_heard",  # before it is written to the client
        "critic.judged",  # not published yet
        "critic.told",  # the judgement is confirmed, before the answer is acknowledged
        "cron.decided",  # the run is stored, its query is not published yet
        "cron.asked",  # its query is on record, which is not stored here
        "cron.answered",  # its end is known, and not stored here
        "cron.kept",  # its state is stored, not published yet
        "files.kept",  # the file's content is stored, the change is not noted
        "files.begun",  # the change is noted, nothing is written
        "files.written",  # beside the file, under another name
        "files.changed",  # the file is changed, before that is noted
        "files.undone",  # the file is as it was, before that is noted
        "gatekeeper.asked",  # the request is stored, but not published
        "gatekeeper.decided",  # the decision is stored, not published yet
        "gatekeeper.grants",  # before a grant is signed
        "generator.heard_live",  # a live copy, nothing is computed
        "generator.speculated",  # the model is asked ahead of the record
        "generator.adopted",  # the journal has delivered the computed turn, nothing is released
        "generator.delivered",  # the query is delivered, nothing is stored
        "generator_b.delivered",  # the first answer is delivered, nothing is stored
        "generator_b.answered",  # the second answer is confirmed, before the first is acknowledged
        "heartbeat.decided",  # the check is stored, no model is asked yet
        "heartbeat.checked",  # its result is stored, not published yet
        "journal.received",  # in the batch, before its commit
        "journal.committed",  # before it is confirmed
        "journal.confirmed",  # confirmed, but not delivered yet
        "journal.acknowledged",  # the acknowledgement has arrived, but is not stored
        "memory.stored",  # the exchange is stored, not published yet
        "memory.told",  # before the answer is acknowledged
        "observer.handled",  # its effect is stored, before its acknowledgement
        "reward.stored",  # the rating is stored, but not published
        "reward.told",  # the reward is confirmed, before that is noted
        "swarm.stored",  # the tasks are stored, their queries are not published yet
        "swarm.asked",  # the task's query is on record
        "tool.before_run",
        "tool.after_run",  # the effect is done, before its record
        "tool.recorded",  # before the reply
        "turn.granted",  # the grant is given, before the request to the tool
        "turn.accepted",  # the query is being stored, before the turn
        "turn.step_stored",  # before the tool request
        "turn.results_in",  # before the step is stored
        "turn.end_stored",  # before the outcome is published
        "turn.published",  # the outcome is confirmed, before the query is acknowledged
    }
)
SIGNALS = {"kill": signal.SIGKILL, "freeze": signal.SIGSTOP}
VARIABLE = "LOCAL2_FAILPOINTS"
_ENTRY = re.compile(r"(?P<name>[\w.]+)=(?P<action>\w+)@(?P<token>[^#]+)(?:#(?P<skip>\d{1,9}))?")
_LOSSY = "lossy=on"


@dataclass(slots=True)
class Failpoint:
    """An armed failpoint: the process that reaches it is struck after `skip` passes, if the token file exists."""

    number: signal.Signals
    token: Path
    skip: int

    def take(self) -> bool:
        """Whether this pass is the one that fails; the token is used up then."""
        if self.skip:
            self.skip -= self.token.exists()
            return False
        try:
            self.token.unlink()
        except FileNotFoundError:
            return False
        return True


@dataclass(frozen=True, slots=True)
class FailpointSet:
    """The failpoints that LOCAL2_FAILPOINTS arms."""

    strikes: dict[str, list[Failpoint]]
    lossy: bool

    def reach(self, name: str) -> None:
        """See `reach`."""
        if name not in NAMES:
            raise ConfigError(f"there is no failpoint {name!r}; {suggestion(name, NAMES)}")
        for strike in self.strikes.get(name, ()):
            if strike.take():
                os.kill(os.getpid(), strike.number)


def reach(name: str) -> None:
    """Mark that this process is at a failpoint. Nothing happens unless a test has armed it. Raises `ConfigError` for a
    name that is not one of `NAMES`, if any is armed, and for an invalid LOCAL2_FAILPOINTS.
    """
    armed = _armed()
    if armed.strikes:
        armed.reach(name)


def check() -> None:
    """Look at LOCAL2_FAILPOINTS now. Raises `ConfigError` if it cannot be read."""
    _armed()


def is_lossy() -> bool:
    """Whether a test wants delivery without its protection: nothing waits for the journal or is sent again."""
    return _armed().lossy


def parse(text: str) -> FailpointSet:
    """Return the value of LOCAL2_FAILPOINTS. Raises `ConfigError` that names the invalid entry."""
    strikes: dict[str, list[Failpoint]] = {}
    entries = [entry.strip() for entry in text.split(",") if entry.strip()]
    for entry in entries:
        if entry == _LOSSY:
            continue
        found = _ENTRY.fullmatch(entry)
        if found is None:
            raise ConfigError(f"{VARIABLE}: expected name=action@token-file[#skip] or {_LOSSY}, found {entry!r}")
        name, action = found["name"], found["action"]
        if name not in NAMES:
            raise ConfigError(f"{VARIABLE}: there is no failpoint {name!r}; {suggestion(name, NAMES)}")
        if action not in SIGNALS:
            raise ConfigError(f"{VARIABLE}: {name}: there is no action {action!r}; {suggestion(action, SIGNALS)}")
        strike = Failpoint(SIGNALS[action], Path(found["token"]), int(found["skip"] or 0))
        strikes.setdefault(name, []).append(strike)
    return FailpointSet(strikes, _LOSSY in entries)


@cache
def _armed() -> FailpointSet:
    return parse(environment().failpoints)

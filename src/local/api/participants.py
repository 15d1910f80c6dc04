"""The participants and their states: from the supervisor's status, and from their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic_core import to_json

from local.api.http import ServerEvent
from local.bus.messages import CONTROL_MESSAGES_GONE as GONE
from local.bus.messages import PARTICIPANT, SUPERVISOR, ChildStatus, ParticipantStatus
from local.queries.asker import JOURNAL, Unavailable
from local.runtime.runner import KEPT, LOOK_SECONDS, SILENT_SECONDS, STORE_PROBLEM

MODEL_OWNER = "generator"
BY_HAND_SECONDS = 2 * LOOK_SECONDS  # within it every running participant has sent its status

Health = Literal["ok", "starting", "degraded"]


@dataclass(slots=True)
class _Beat:
    status: ParticipantStatus
    heard_at: float


class ParticipantTable:
    """The participants by their own status messages and by the supervisor's status of its children. Times are seconds
    of one monotonic clock. A participant that is silent for too long is removed.
    """

    def __init__(self) -> None:
        self._children: tuple[ChildStatus, ...] = ()
        self._supervisor_heard_at: float | None = None
        self._supervised_since: float | None = None
        self._beats: dict[tuple[str, int], _Beat] = {}  # by name and process
        self._names: dict[str, str] = {}  # by the supervisor's name, from the child's own status; and the next
        self._kinds: dict[str, str] = {}
        self._model: str | None = None
        self._details: Mapping[str, str] = {}  # the supervisor's

    def update(self, status: ParticipantStatus, now: float) -> None:
        """Receive a status."""
        self._forget_silent(now)
        if status.name == SUPERVISOR:
            leaving = status.state == "stopping"
            self._children, self._supervisor_heard_at = status.children, None if leaving else now
            self._supervised_since = now if self._supervised_since is None else self._supervised_since
            self._details = status.details
        elif status.state == "stopping":
            self._beats.pop((status.name, status.pid), None)
        else:
            self._beats[status.name, status.pid] = _Beat(status, now)
            if status.child:
                self._names[status.child], self._kinds[status.child] = status.name, status.kind
            if status.name == MODEL_OWNER:
                self._model = status.details.get("model")

    @property
    def model(self) -> str | None:
        """Return the model that answers, from the generator's latest status."""
        return self._model

    @property
    def notice(self) -> str:
        """Return the supervisor's note to users on this start; empty if there is none."""
        return self._details.get("notice", "")

    def health(self, now: float) -> Health:
        """Return `ok` if every child of the supervisor is ready and has sent its status, and there is no `problem`;
        `starting` while none of them has failed yet.
        """
        if self.problem(now):
            return "degraded"
        unready = any(child.state != "ready" for child in self._children)
        unknown = any(child.kind == PARTICIPANT and child.name not in self._kinds for child in self._children)
        is_told = self._supervisor_heard_at is not None and bool(self._children)
        return "ok" if is_told and not unready and not unknown else "starting"

    def problem(self, now: float) -> str:
        """Return the first problem: of the system as a whole, of a child of the supervisor, or one that a participant
        reports of itself; empty if there is none.
        """
        return next(self._problems(now), "")

    def _problems(self, now: float) -> Iterator[str]:
        if self._supervisor_heard_at is None:
            return
        if now - self._supervisor_heard_at > SILENT_SECONDS:
            yield "its supervisor says nothing"
        if problem := self._details.get("problem"):
            yield problem
        for child in self._children:
            if child.state not in ("ready", "starting") or (child.state == "starting" and child.restarts):
                yield f"{child.name} is {child.state}" + (f": {child.detail}" if child.detail else "")
        pids = {child.name: child.pid for child in self._children}
        for beat in self._beats.values():
            status = beat.status
            if now - beat.heard_at > SILENT_SECONDS or pids.get(status.child, status.pid) != status.pid:
                continue  # a status of a process that has ended
            yield from (f"{status.name}: {text}" for name, text in status.details.items() if name.endswith("problem"))

    def lives(self, name: str, now: float) -> bool:
        """Whether a participant of that name reports that it is ready."""
        self._forget_silent(now)
        return any(beat.status.state == "ready" for beat in self._beats.values() if beat.status.name == name)

    def is_expected(self, name: str, now: float) -> bool:
        """Whether a participant of that name is ready or will be: the supervisor starts it, or restarts a
        silent one.
        """
        is_kept = any(child.name == name and child.state in KEPT for child in self._children)
        return is_kept or self.lives(name, now)

    def absence(self, now: float) -> Unavailable | None:
        """Return which participant is missing that every query needs, or cannot store a query; None while it may still
        come, at a start or between a death and the restart.
        """
        for name in (JOURNAL, MODEL_OWNER):
            reason = self._reason_for_absence(name, now)
            if reason is not None:
                return Unavailable(name, reason)
        problem = self.details(MODEL_OWNER, now).get(STORE_PROBLEM)
        return Unavailable(MODEL_OWNER, problem) if problem else None

    def _reason_for_absence(self, name: str, now: float) -> str | None:
        child = next((child for child in self._children if child.name == name), None)
        if child is not None:
            is_gone = child.state == "failed" and not self._has_come_by_hand(name)
            return f"the {name} has failed ({child.detail})" if is_gone else None
        if self._supervised_since is None or now - self._supervised_since < BY_HAND_SECONDS or self.lives(name, now):
            return None
        return f"there is no {name}; `participants` in system.yaml says who is started"

    def _has_come_by_hand(self, name: str) -> bool:
        beats = self._beats.values()
        return any(not beat.status.child and beat.status.state == "ready" for beat in beats if beat.status.name == name)

    def details(self, name: str, now: float) -> Mapping[str, str]:
        """Return the details in the latest status of a participant of that name; empty if it has ended."""
        self._forget_silent(now)
        said = [beat for beat in self._beats.values() if beat.status.name == name]
        return max(said, key=lambda beat: beat.heard_at).status.details if said else {}

    def listing(self, now: float) -> list[dict[str, Any]]:
        """Return the supervisor's children in start order, then participants started by hand."""
        self._forget_silent(now)
        said = {(beat.status.child, beat.status.pid): beat for beat in self._beats.values()}
        rows = []
        for child in self._children:
            beat = said.get((child.name, child.pid or 0))
            name, kind = self._names.get(child.name, child.name), self._kinds.get(child.name, child.kind)
            rows.append({**child.model_dump(), "name": name, "kind": kind, **_said(beat)})
        for _, beat in sorted(self._beats.items()):
            status = beat.status
            if not status.child:
                row = {"name": status.name, "kind": status.kind, "state": status.state, "pid": status.pid}
                rows.append({**row, "restarts": 0, "detail": "started by hand", **_said(beat)})
        return rows

    def _forget_silent(self, now: float) -> None:
        silent = [who for who, beat in self._beats.items() if now - beat.heard_at > SILENT_SECONDS]
        for who in silent:
            del self._beats[who]


def _said(beat: _Beat | None) -> dict[str, Any]:
    if beat is None:
        return {"instance": None, "inflight": 0, "counters": {}, "details": {}, "subscriptions": {}}
    status = beat.status
    return status.model_dump(include={"instance", "inflight", "counters", "details", "subscriptions"})


# The participants in a stream: each row when it has changed.

Row = dict[str, Any]
Key = tuple[str, int | None]


class ParticipantWatch:
    """The participants as one stream has received them: returns the changed rows, when that is `due`. `clock` returns
    the table's seconds.
    """

    def __init__(self, table: ParticipantTable, clock: Callable[[], float]) -> None:
        self._table, self._clock = table, clock
        self._told: dict[Key, Row] = {}
        self.due = True

    def restart(self) -> None:
        """Send everything again, because it did not arrive."""
        self._told, self.due = {}, True

    def take(self) -> list[ServerEvent]:
        """Return the new and changed rows; a participant that left the table is `gone`."""
        if not self.due:
            return []
        self.due = False
        rows = {_key(row): row for row in self._table.listing(self._clock())}
        gone = [{**row, "state": GONE} for key, row in self._told.items() if key not in rows]
        changed = [row for key, row in rows.items() if self._told.get(key) != row]
        self._told = rows
        return [ServerEvent("participant", to_json(row)) for row in (*gone, *changed)]


def _key(row: Row) -> Key:
    """A child keeps its name over its restarts; of those started by hand several may have one name."""
    return row["name"], row["pid"] if row["detail"] == "started by hand" else None

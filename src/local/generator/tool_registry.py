"""The tools that exist now: those that have announced themselves, and the useful ones of the built-in tools."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, get_args

from local.bus.messages import CLOSED, AnswerOptions, ChildStatus, ToolCallRecord, ToolSchema, latest_list, latest_plan
from local.bus.vocabulary import CALL_TOOL, CLARIFICATION, PLAN_STEP, PROPOSE_PLAN, TODO_LIST, TOOL_SEARCH, Category
from local.generator.builtin_tools import SCHEMAS
from local.generator.steps import READ_RESULT
from local.runtime.runner import SILENT_SECONDS

# The tools without a process, as the supervisor reports: given up until the next try, or removed.

GIVEN_UP = "failed"  # one that is being restarted is no outage: it still receives its calls


class ToolOutages:
    """The tools without a living process. The supervisor names child processes; tools name themselves and their child
    process.
    """

    def __init__(self) -> None:
        self._children: dict[str, ChildStatus] = {}  # by name
        self._child_of: dict[str, str] = {}  # by tool's participant, the latest
        self._gone: set[str] = set()  # children that there were
        self._changed = asyncio.Event()

    def note_process(self, sender: str, child: str) -> None:
        """A tool's participant lives, as a child of the supervisor or, without a name, by hand."""
        self._child_of[sender] = child

    def supervised(self, children: Iterable[ChildStatus]) -> None:
        """Receive the supervisor's status of its children."""
        before, self._children = self._children.keys(), {child.name: child for child in children}
        self._gone = (self._gone | before) - self._children.keys()
        self._changed.set()
        self._changed = asyncio.Event()

    def reason(self, sender: str) -> str | None:
        """Why a tool's participant answers nothing; None if it is not known to be away."""
        name = self._child_of.get(sender, "")
        if name in self._gone:
            return "it was taken out of the settings"
        child = self._children.get(name)
        if child is None or child.state != GIVEN_UP:
            return None
        return f"its process cannot live ({child.detail})"

    async def begins(self, sender: str) -> str:
        """Note that a tool's participant is being started."""
        while (why := self.reason(sender)) is None:
            await self._changed.wait()
        return why


MAX_SCHEMA_BYTES = 16 * 1024  # it is a part of every call of the model
_ACTING = frozenset({"write", "shell"})  # categories
_OF_TOOLS = (READ_RESULT, TOOL_SEARCH, CALL_TOOL)  # which work on other tools


@dataclass(frozen=True, slots=True)
class Offer:
    """One announced tool: its schema, its sender, and when each of the sender's processes was last active: one may
    replace the other.
    """

    schema: ToolSchema
    sender: str
    processes: Mapping[str, float]  # by instance

    @property
    def heard_at(self) -> float:
        """Return when the latest process was active."""
        return max(self.processes.values())

    def others(self, instance: str, now: float) -> dict[str, float]:
        """The processes that live beside this one."""
        return {name: at for name, at in self.processes.items() if name != instance and now - at < SILENT_SECONDS}


class ToolRegistry:
    """The tools that exist, as they have announced themselves. Times are seconds of one monotonic clock. A tool is
    offered until its participant stops, with all its processes, or is silent for too long; a restarted one takes its
    own tool over. A second tool of the same name is refused, and so is one whose schema is too long for a prompt.
    """

    def __init__(self) -> None:
        self._offers: dict[str, Offer] = {}
        self._offered: dict[str, ToolSchema] = {}
        self._offered_until = -math.inf  # when the first of these has been silent for too long
        self._refused: dict[str, str] = {}  # sender -> the tool that it may not offer
        self._faulty: set[str] = set()  # senders of tools that are left out of prompts
        self._owners: dict[str, str] = {}  # by tool that has left: its participant
        self.outages = ToolOutages()
        self._before: Collection[str] = ()
        self.settled_at = 0.0

    def expect(self, names: Collection[str], until: float) -> None:
        """Wait until then for the tools that existed before this process began."""
        self._before, self.settled_at = names, until

    def known(self, now: float) -> set[str]:
        """The names of the tools that there are, and of those that are expected."""
        return {*self.offered(now), *(self._before if now < self.settled_at else ())}

    def announce(self, schema: ToolSchema, sender: str, instance: str, now: float) -> str | None:
        """Register a tool. Returns why it is refused, or None."""
        if why := _fault(schema):
            self._faulty.add(sender)
            return f"tool {schema.tool} of {sender} is refused: {why}"
        self._faulty.discard(sender)
        owner = self._offers.get(schema.tool)
        if owner is not None and owner.sender != sender and self._is_alive(owner, now):
            self._refused[sender] = schema.tool
            return f"tool {schema.tool} of {sender} is refused: {owner.sender} offers one of that name"
        self._refused.pop(sender, None)
        others = owner.others(instance, now) if owner is not None and owner.sender == sender else {}
        self._set(schema.tool, Offer(schema, sender, {**others, instance: now}))
        return None

    def note_process(self, sender: str, instance: str, now: float) -> bool:
        """Note a sign of life of a tool's process; False if it should announce its tool (again)."""
        known = [name for name, offer in self._offers.items() if offer.sender == sender]
        for name in known:
            self._set(name, replace(self._offers[name], processes={**self._offers[name].processes, instance: now}))
        rival = self._offers.get(self._refused.get(sender, ""))
        is_refused = sender in self._faulty or (rival is not None and self._is_alive(rival, now))
        return bool(known) or is_refused

    def left(self, sender: str, instance: str, now: float) -> None:
        """Note that a process of a tool's participant stops; its successor, if it runs already, stays."""
        for name, offer in list(self._offers.items()):
            if offer.sender == sender and instance in offer.processes:
                if others := offer.others(instance, now):
                    self._set(name, replace(offer, processes=others))
                else:
                    self._set(name, None)
                    self._owners[name] = sender

    def are_settled(self, now: float) -> bool:
        """Whether the existing tools have had the time to announce themselves since this process began."""
        return now >= self.settled_at or (bool(self._before) and self.offered(now).keys() >= set(self._before))

    def offered(self, now: float) -> dict[str, ToolSchema]:
        """The tools that can be called, by name."""
        if now >= self._offered_until:  # it is asked for several times in each turn
            alive = {name: offer for name, offer in sorted(self._offers.items()) if self._is_alive(offer, now)}
            self._offered = {name: offer.schema for name, offer in alive.items()}
            self._offered_until = min((offer.heard_at for offer in alive.values()), default=math.inf) + SILENT_SECONDS
        return dict(self._offered)

    def trouble(self, tool: str, now: float) -> str | None:
        """Return why an offered tool would not answer now; None if no reason is known."""
        offer = self._offers.get(tool)
        if offer is None:
            return self.outages.reason(self._owners.get(tool, tool))
        if not self._is_alive(offer, now):
            return f"nothing was heard of it for {SILENT_SECONDS:g} s"
        return self.outages.reason(offer.sender)

    async def given_up(self, tool: str) -> str:
        """Wait until the process of a tool is given up; returns why."""
        offer = self._offers.get(tool)
        return await self.outages.begins(self._owners.get(tool, tool) if offer is None else offer.sender)

    def _set(self, tool: str, offer: Offer | None) -> None:
        self._offered_until = -math.inf
        if offer is None:
            del self._offers[tool]
        else:
            self._offers[tool] = offer

    def _is_alive(self, offer: Offer, now: float) -> bool:
        return now < offer.heard_at + SILENT_SECONDS


def _fault(schema: ToolSchema) -> str | None:
    """Return why a tool cannot be offered, regardless of its sender; None if it can."""
    if schema.tool in SCHEMAS:
        return "every turn has one of that name"
    size = len(schema.encode())
    return f"its schema has {size} bytes, at most {MAX_SCHEMA_BYTES}" if size > MAX_SCHEMA_BYTES else None


def with_own(
    tools: Mapping[str, ToolSchema],
    options: AnswerOptions | None,
    *,
    asks_user: bool,
    listed: Iterable[str] = (),
) -> dict[str, ToolSchema]:
    """The tools with those of the turn itself that are of use: where it `asks_user`, beside tools that do more than
    read, and beside any; and those that its model is offered already (`listed`)."""
    own = list[str]()
    if asks_user:
        own += [CLARIFICATION, *([PROPOSE_PLAN, PLAN_STEP] if does_more_than_read(tools.values()) else ())]
    if any(schema.category in _ACTING for schema in tools.values()):
        own.append(TODO_LIST)
    own += (name for name in listed if name in SCHEMAS and name not in _OF_TOOLS)
    wanted = [name for name in own if options is None or options.offers(name)]
    of_tools = [name for name in _OF_TOOLS if tools and (options is None or name not in options.deny)]
    return {**tools, **{name: SCHEMAS[name] for name in (*wanted, *of_tools)}}


def does_more_than_read(offered: Iterable[ToolSchema]) -> bool:
    """Whether one of the tools changes something, or runs programs that might."""
    return any(schema.safety != "L0" for schema in offered)


# The phase of a turn by the calls that it has made, and the kinds of tools that are useful then: one table.


class WorkPhase(StrEnum):
    """The phase of a turn's work."""

    RESEARCHING = "researching"
    EDITING = "editing"
    VERIFYING = "verifying"
    COMPLETING = "completing"


_WORKING: frozenset[Category] = frozenset({"read", "search", "write", "shell", "git", "meta", "memory"})
CATEGORIES: Final[Mapping[WorkPhase, frozenset[Category]]] = {
    WorkPhase.RESEARCHING: frozenset(get_args(Category)),
    WorkPhase.EDITING: _WORKING,
    WorkPhase.VERIFYING: _WORKING,
    WorkPhase.COMPLETING: frozenset({"read", "shell", "git", "meta"}),  # git: to commit the result
}
READS_AGAIN = 4  # so many calls that only look something up, one after the other, are research


def phase_of(made: Iterable[Category], *, all_done: bool) -> WorkPhase:
    """Return the phase after calls of tools of these kinds; `all_done`: nothing of its to-do list is left."""
    if all_done:
        return WorkPhase.COMPLETING
    phase, lookups, has_edited = WorkPhase.RESEARCHING, 0, False
    for category in made:
        if category == "write":
            phase, lookups, has_edited = WorkPhase.EDITING, 0, True
        elif category in ("shell", "git"):
            phase, lookups = WorkPhase.VERIFYING if has_edited else phase, 0
        elif category != "meta":
            lookups += 1
            phase = WorkPhase.RESEARCHING if lookups >= READS_AGAIN else phase
    return phase


def phase_after(records: Sequence[ToolCallRecord], tools: Mapping[str, ToolSchema]) -> WorkPhase:
    """Return the phase of a turn that has made these calls."""
    calls = [dict(record) for record in records]
    plan = latest_plan(calls)
    steps = plan.steps if plan is not None and plan.status == "approved" else ()
    states = [item.state for item in latest_list(calls)] + [step.state for step in steps]
    made = [tools[record.tool].category for record in records if record.result is not None and record.tool in tools]
    return phase_of(made, all_done=bool(states) and CLOSED.issuperset(states))

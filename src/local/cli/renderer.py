"""The progress of a query, and its display as JSON for programs or as plain text for pipes and screen readers."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from local.bus.vocabulary import PLAN_STEP, PROPOSE_PLAN, TODO_LIST
from local.cli.client import StreamEvent
from local.cli.main import visible

# The state of a followed query: its text so far, its calls, its end.

Json = dict[str, Any]
ENDS = ("response", "error")
MOST_OUTPUT = 4000  # the last characters of a running call's output that are kept


@dataclass(slots=True)
class QueryProgress:
    """The state of a query, computed from its events. `said` is the model's text since its last tool call, `before`
    its earlier text; `calls` has the latest event of each call by its call_id.
    """

    before: str = ""
    said: str = ""
    thinking: str = ""
    thoughts: int = 0  # fragments of thinking, which is about as many tokens
    state: str = ""
    waiting: str = ""  # why nothing happens
    reading: str = ""  # how far the model has read its prompt
    calls: dict[str, Json] = field(default_factory=dict)
    context: Json | None = None  # the memories added to the prompt
    end: StreamEvent | None = None
    _outputs: dict[str, str] = field(default_factory=dict)  # of running calls, by call_id

    def receive(self, event: StreamEvent) -> bool:
        """Update the state with an event; returns whether it was new, because messages on the bus may be repeated."""
        data = event.data
        if event.name in ENDS:
            self.end = event
        elif event.name == "snapshot":
            self.before, self.said, self.thinking = "", data["answer"], data["thinking"]
            self.calls = {call["call_id"]: call for call in data["tool_calls"]}
        elif event.name == "token":
            self.said += data["text"]
        elif event.name == "thinking":
            self.thinking += data["text"]
            self.thoughts += 1
        elif event.name == "context":
            is_known, self.context = data == self.context, data
            return not is_known
        elif event.name in ("tool_call", "tool_result"):
            return self._receive_call(data)
        elif event.name == "tool_progress":
            return self._receive_output(data)
        self.state = data["to"] if event.name == "state" else self.state
        self.waiting = data["reason"] if event.name == "waiting" else ""
        read = data if event.name == "progress" else data.get("reading") if event.name == "snapshot" else None
        self.reading = f"reading {read['done']:,} of {read['total']:,} tokens" if read else ""
        return True

    @property
    def open_calls(self) -> list[Json]:
        """The calls without a result."""
        return [call for call in self.calls.values() if not is_settled(call)]

    def output_of(self, call_id: str) -> str:
        """Return the end of the output so far of a call without a result."""
        return self._outputs.get(call_id, "")

    def _receive_output(self, data: Json) -> bool:
        call_id = data["call_id"]
        call = self.calls.get(call_id)
        if call is None or is_settled(call):
            return False
        self._outputs[call_id] = f"{self.output_of(call_id)}{data['text']}"[-MOST_OUTPUT:]
        return True

    def _receive_call(self, data: Json) -> bool:
        known = self.calls.get(data["call_id"])
        if known is not None and (is_settled(known) or not is_settled(data)):
            return False
        if known is None:
            self.before, self.said = f"{self.before}{self.said}", ""
        self.calls[data["call_id"]] = {**(known or {}), **data}
        return True


def is_settled(call: Json) -> bool:
    """Whether a call has its result, or the error in its place."""
    return call.get("result") is not None or call.get("error") is not None


# A model's to-do list or plan, as lines of a terminal.

PLANS = frozenset({PROPOSE_PLAN, PLAN_STEP})
MARKS = {"open": "[ ]", "doing": "[>]", "done": "[x]", "dropped": "[-]"}


def todo_lines(call: Json) -> list[str]:
    """The list that a call has set, a line for each item; empty for any other call, and for one that failed."""
    items = (call.get("args") or {}).get("items") if call.get("tool") == TODO_LIST and call.get("result") else None
    if not isinstance(items, list):
        return []
    return [f"{MARKS.get(item.get('state', 'open'), '[?]')} {_shown(item.get('text'))}" for item in items]


def plan_lines(calls: Iterable[Json], call: Json) -> list[str]:
    """Return the plan after these calls, if that call belongs to it: its title, and a line for each step."""
    if call.get("tool") not in PLANS or call.get("result") is None:
        return []
    from local.bus.messages import latest_plan  # with pydantic, which takes longer than all else of `ask`

    plan = latest_plan(calls)
    if plan is None:
        return []
    steps = (f"  {MARKS[step.state]} {number}. {_shown(step.text)}" for number, step in enumerate(plan.steps, 1))
    return [f"plan: {_shown(plan.title)}", *steps]


def _shown(text: Any) -> str:
    return visible(" ".join(str(text).split()))


Write = Callable[[str], object]
ARGUMENT_CHARACTERS = 60


class Renderer(Protocol):
    """The base class of query displays: it receives each event once, after the progress was updated, and a tick as
    time passes.
    """

    def receive(self, event: StreamEvent, progress: QueryProgress) -> None:
        """Show an event."""

    def tick(self, progress: QueryProgress) -> None:
        """Show that time passes."""
        return

    def close(self) -> None:
        """Leave nothing unfinished on the terminal."""
        return


class JsonRenderer(Renderer):
    """The renderer for programs: one event of the query's stream on each line, with `event`, `id`, and its data."""

    def __init__(self, write: Write) -> None:
        self._write = write

    def receive(self, event: StreamEvent, progress: QueryProgress) -> None:
        self._write(json.dumps({"event": event.name, "id": event.event_id, **event.data}, ensure_ascii=False) + "\n")


class PlainRenderer(Renderer):
    """The renderer for pipes and screen readers: the answer by `write` when it is complete, and by `note` a line for
    each thing that happens on the way."""

    def __init__(self, write: Write, note: Write) -> None:
        self._write, self._note = write, note
        self._waiting = ""
        self._is_reading = False

    def receive(self, event: StreamEvent, progress: QueryProgress) -> None:
        if event.name == "tool_result":
            self._note("".join(f"{line}\n" for line in call_lines(progress, progress.calls[event.data["call_id"]])))
        if event.name == "context" and (line := context_line(event.data)):
            self._note(f"{line}\n")
        if progress.waiting != self._waiting:
            self._waiting = progress.waiting
            self._note(f"waiting: {visible(progress.waiting)}\n" if progress.waiting else "")
        if bool(progress.reading) is not self._is_reading:
            self._is_reading = not self._is_reading
            self._note(f"{progress.reading}\n" if progress.reading else "")
        if event.name == "response":
            answer = event.data["answer"]
            self._write(answer if answer.endswith("\n") or not answer else f"{answer}\n")
            for sentence in event.data.get("degraded", ()):
                self._note(f"note: {visible(sentence)}\n")


def context_line(context: Json) -> str:
    """Return, in one line, which memories were added to the prompt; empty if there are none."""
    facts, recalled = context.get("facts") or (), context.get("recalled") or ()
    found = [f"{_shortened(each['query'])} ({_day(each['asked_at'])})" for each in recalled]
    told = [f"recalled: {'; '.join(found)}"] if found else []
    told += [f"known about you: {len(facts)} fact{'s' if len(facts) > 1 else ''}"] if facts else []
    return visible(" · ".join(told))


def _day(seconds: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(seconds))


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= ARGUMENT_CHARACTERS else f"{line[: ARGUMENT_CHARACTERS - 1]}…"


def call_lines(progress: QueryProgress, call: Json) -> list[str]:
    """Return a finished tool call as lines: the call, or the resulting list or plan."""
    if listed := todo_lines(call):
        return ["to do:", *(f"  {line}" for line in listed)]
    return plan_lines(progress.calls.values(), call) or [call_line(call)]


def call_line(call: Json) -> str:
    """Return a tool call as one line: the arguments, the time, the result."""
    asked = call_text(call)
    if not is_settled(call):
        return asked
    took = f"{call.get('duration_ms', 0.0) / 1000:.2f} s"
    if error := call.get("error"):
        return f"{asked}  {took}  failed: {visible(str(error.get('message', '')))}"
    sources = len(call.get("sources") or ())
    return f"{asked}  {took}" + (f"  {sources} source{'s' if sources > 1 else ''}" if sources else "")


def call_text(call: Json) -> str:
    """A tool and its arguments, shortened."""
    given = ", ".join(str(value) for value in (call.get("args") or {}).values())
    text = visible(" ".join(given.split()))
    shown = text if len(text) <= ARGUMENT_CHARACTERS else f"{text[: ARGUMENT_CHARACTERS - 1]}…"
    return f"{visible(call['tool'])} “{shown}”" if shown else visible(call["tool"])

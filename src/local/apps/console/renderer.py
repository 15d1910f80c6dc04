"""How a query is shown while it is answered: as JSON for programs, or as plain text for pipes and screen readers."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any, Protocol

from local.apps.console.query_progress import QueryProgress, is_settled
from local.apps.console.todo_lines import plan_lines, todo_lines
from local.apps.system_client import StreamEvent
from local.apps.terminal import visible

Json = dict[str, Any]
Write = Callable[[str], object]
ARGUMENT_CHARACTERS = 60


class Renderer(Protocol):
    """Is told of each event once, after the progress has taken it, and of the time that passes between them."""

    def receive(self, event: StreamEvent, progress: QueryProgress) -> None:
        """Show an event."""

    def tick(self, progress: QueryProgress) -> None:
        """Show that time passes."""
        return

    def close(self) -> None:
        """Leave nothing unfinished on the terminal."""
        return


class JsonRenderer(Renderer):
    """One event of the query's stream on each line: `event`, `id`, and its data."""

    def __init__(self, write: Write) -> None:
        self._write = write

    def receive(self, event: StreamEvent, progress: QueryProgress) -> None:
        self._write(json.dumps({"event": event.name, "id": event.event_id, **event.data}, ensure_ascii=False) + "\n")


class PlainRenderer(Renderer):
    """The answer by `write` when it is there, and by `note` what happens on the way: a line for each thing."""

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
    """What a model was told of the user unasked, in one line; empty where that is nothing."""
    facts, recalled = context.get("facts") or (), context.get("recalled") or ()
    found = [f"{_shortened(each['query'])} ({_day(each['asked_at'])})" for each in recalled]
    told = [f"recalled: {'; '.join(found)}"] if found else []
    told += [f"told about you: {len(facts)} fact{'s' if len(facts) > 1 else ''}"] if facts else []
    return visible(" · ".join(told))


def _day(seconds: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(seconds))


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= ARGUMENT_CHARACTERS else f"{line[: ARGUMENT_CHARACTERS - 1]}…"


def call_lines(progress: QueryProgress, call: Json) -> list[str]:
    """A tool call that has ended as lines: what it was, or the list or plan as it stands with it."""
    if listed := todo_lines(call):
        return ["to do:", *(f"  {line}" for line in listed)]
    return plan_lines(progress.calls.values(), call) or [call_line(call)]


def call_line(call: Json) -> str:
    """A tool call as one line: what was asked, how long it took, what came of it."""
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

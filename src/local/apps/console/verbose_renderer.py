"""A query shown with all that leads to its answer: what the model thinks, whole calls and results, states, costs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from local.apps.console.query_progress import QueryProgress
from local.apps.console.renderer import Renderer
from local.apps.system_client import StreamEvent
from local.apps.terminal import visible

Json = dict[str, Any]
_AFTER_THINKING = ("token", "tool_call", "response", "error")


class VerboseRenderer(Renderer):
    """Has another renderer show the query, and tells by `tell` what that one leaves out, line by line. What happens in
    the midst of a text is told after it."""

    def __init__(self, renderer: Renderer, tell: Callable[[str], object]) -> None:
        self._renderer, self._tell = renderer, tell
        self._thought = 0  # characters of the thinking that are told
        self._held: list[str] = []

    def receive(self, event: StreamEvent, progress: QueryProgress) -> None:
        if event.name in _AFTER_THINKING:
            self._tell_all(_indented("thinks", progress.thinking[self._thought :].strip()))
            self._thought = len(progress.thinking)
        self._held += _LINES.get(event.name, _no_lines)(event.data)
        self._renderer.receive(event, progress)
        if not progress.said or progress.end is not None:
            self._tell_all(self._held)
            self._held = []

    def tick(self, progress: QueryProgress) -> None:
        self._renderer.tick(progress)

    def close(self) -> None:
        self._renderer.close()
        self._tell_all(self._held)

    def _tell_all(self, lines: list[str]) -> None:
        for line in lines:
            self._tell(visible(line))


def _accepted(data: Json) -> list[str]:
    return [f"query {data['query_id']} in conversation {data.get('session_id')}, attempt {data['attempt']}"]


def _state(data: Json) -> list[str]:
    changes = [data, *data.get("then", ())]  # which follow each other at once
    return [f"{data['from']} → " + " → ".join(f"{each['to']} ({each['action']})" for each in changes)]


def _context(data: Json) -> list[str]:
    facts = [f"  told about you: {fact}" for fact in data.get("facts") or ()]
    recalled = [f"  recalled engram:{each['engram_id']}: {each['query']}" for each in data.get("recalled") or ()]
    return ["from the memory:", *facts, *recalled] if facts or recalled else []


def _call(data: Json) -> list[str]:
    return [f"calls {data['tool']} {json.dumps(data['args'], ensure_ascii=False)}"]


def _result(data: Json) -> list[str]:
    sources = [f"  source: {source}" for source in data.get("sources") or ()]
    return [*_indented("gave", data.get("result") or ""), *sources]


def _response(data: Json) -> list[str]:
    return list(_costs(data.get("usage") or {}))


def _costs(usage: Json) -> Iterator[str]:
    for step in usage.get("steps") or ():
        tokens = f"{step['prompt_tokens']} → {step['completion_tokens']} tokens"
        first = f", first word after {step['first_token'] - step['started']:.2f} s" if step["first_token"] else ""
        yield f"asked {step['model']}: {tokens}, {step['ended'] - step['started']:.2f} s{first}"
    parts = (usage.get("context") or {}).get("parts") or {}
    if parts:
        yield "in the window: " + ", ".join(f"{name} {tokens}" for name, tokens in parts.items() if tokens)


def _indented(what: str, text: str) -> list[str]:
    return [f"{what}:", *(f"  {line}" for line in text.splitlines())] if text else []


def _no_lines(data: Json) -> list[str]:
    return []


_LINES: dict[str, Callable[[Json], list[str]]] = {
    "accepted": _accepted,
    "state": _state,
    "context": _context,
    "tool_call": _call,
    "tool_result": _result,
    "response": _response,
}

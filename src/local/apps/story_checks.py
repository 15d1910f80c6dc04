"""Compares what a story expects with what happened. No I/O."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local.apps.story import Approval, Awaited, BusExpect, Command, Expect, FilesExpect, Remembered, Saying

SHOWN_CHARS = 120


@dataclass(frozen=True, slots=True)
class Check:
    """One expectation: whether it was met, what it was, and what was found."""

    passed: bool
    what: str
    found: str

    def __str__(self) -> str:
        return f"{'✓' if self.passed else '✗'} {self.what}: {_shortened(self.found)}"


def check_answer(expect: Expect, payload: Mapping[str, Any], *, own_web: bool) -> list[Check]:
    """Check one answer as POST /query gives it. `own_web`: what was found is what the runner laid out to be found."""
    return list(_answer_checks(expect, payload, own_web))


def check_bus(expect: BusExpect, subjects: Sequence[str]) -> list[Check]:
    """Check the subjects of a story, in the order in which they were first seen or seen again."""
    seen = f"only {', '.join(dict.fromkeys(subjects)) or 'nothing'}"
    checks = []
    for subject in expect.present:
        found = subject in subjects
        checks.append(Check(found, f"{subject} is on the bus", "seen" if found else seen))
    for subject in expect.absent:
        found = subject in subjects
        checks.append(Check(not found, f"{subject} is not on the bus", "seen" if found else "not seen"))
    if expect.in_order:
        what = f"the bus carries {' → '.join(expect.in_order)}"
        order = " → ".join(subject for subject in subjects if subject in expect.in_order) or "none of them"
        passed = _in_order(expect.in_order, subjects)
        checks.append(Check(passed, what, "in this order" if passed else order))
    return checks


def check_came(awaited: Sequence[Awaited], messages: Sequence[Mapping[str, Any]]) -> list[Check]:
    """Check that each came, among the envelopes that did."""
    checks = []
    for one in awaited:
        of_subject = [message for message in messages if message["subject"] == one.subject]
        came = [message for message in of_subject if says(one, message["payload"])]
        found = came[:1] or of_subject[-1:] or messages
        what = f"{one.subject} comes{_wanted(one)}"
        checks.append(Check(bool(came), what, ", ".join(_told(one, m["subject"], m["payload"]) for m in found)))
    return checks


def check_card(approval: Approval, asked: Mapping[str, Any]) -> Check:
    """Check what is said where a call asks for leave, the payload of an `approval.request`."""
    card = Saying(one_of=(approval.card,) if approval.card else ())
    return Check(says(card, asked), f"{approval.tool} asks for leave{_wanted(card)}", _told(card, approval.tool, asked))


def check_command(command: Command, status: int, output: str) -> list[Check]:
    """Check what a command has printed, and its exit status."""
    name = f"local2 {command.run}"
    checks = [Check(status == 0, f"{name} succeeds", output if status else "it does")]
    checks += [Check(_plain(text) in _plain(output), f"{name} says “{text}”", output) for text in command.says]
    concealed = ((text, _plain(text) in _plain(output)) for text in command.conceals)
    return [*checks, *(Check(not found, f"{name} does not say “{text}”", output) for text, found in concealed)]


def told_call(asked: Mapping[str, Any]) -> str:
    """A call that asks for leave, in one line."""
    return f"{asked['tool']} ({', '.join(f'{name} {_worded(value)}' for name, value in asked['args'].items())})"


def check_files(expect: FilesExpect, workspace: Path) -> list[Check]:
    """Check which files there are in a folder."""
    checks = []
    for name, wanted in (*((name, True) for name in expect.present), *((name, False) for name in expect.absent)):
        is_there = (workspace / name).is_file()
        what = f"{name} is {'' if wanted else 'not '}in the workspace"
        checks.append(Check(is_there is wanted, what, "there" if is_there else "not there"))
    return checks


def check_not_opened(paths: Sequence[str], opened: Sequence[str]) -> list[Check]:
    """Check that nobody has asked for a path, whatever stood behind it; `opened` are paths with their queries."""
    return [
        Check(not found, f"nobody opens {path}", ", ".join(found) or "nobody has")
        for path in paths
        for found in [[one for one in opened if one.startswith(path)]]
    ]


def check_memory(remembered: Remembered, hits: Sequence[Mapping[str, Any]]) -> Check:
    """Check what a search of the memory has found."""
    fitting = [hit for hit in hits if says(remembered, hit)]
    found = ", ".join(_told(remembered, f"“{hit['query']}”", hit) for hit in fitting[:1] or hits) or "nothing"
    return Check(bool(fitting), f"the memory finds “{remembered.query}”{_wanted(remembered)}", found)


def says(expected: Saying, payload: Mapping[str, Any]) -> bool:
    """Whether a payload says one of the things that are expected."""
    return not expected.one_of or any(
        all(field in payload and _allows(wanted, payload[field]) for field, wanted in fields.items())
        for fields in expected.one_of
    )


def _allows(wanted: Any, value: Any) -> bool:
    match wanted:
        case list() | tuple():
            return any(_allows(each, value) for each in wanted)
        case {"from": lowest, "to": highest}:
            return isinstance(value, int | float) and not isinstance(value, bool) and lowest <= value <= highest
        case {"contains": text}:
            texts = value if isinstance(value, list | tuple) else [value]
            return any(_plain(str(text)) in _plain(str(each)) for each in texts)
    return bool(wanted == value) and isinstance(wanted, bool) == isinstance(value, bool)


def _wanted(expected: Saying) -> str:
    alternatives = (
        ", ".join(f"{field} {_worded(wanted)}" for field, wanted in fields.items()) for fields in expected.one_of
    )
    return f" with {', or '.join(alternatives)}" if expected.one_of else ""


def _worded(value: Any) -> str:
    match value:
        case list() | tuple():
            return " or ".join(map(_worded, value))
        case {"from": lowest, "to": highest}:
            return f"{lowest} to {highest}"
        case {"contains": text}:
            return f"with “{text}”"
        case str():
            return value
    return json.dumps(value)


def _told(expected: Saying, name: str, payload: Mapping[str, Any]) -> str:
    """What was found, with the fields that were asked for."""
    fields = dict.fromkeys(field for fields in expected.one_of for field in fields)
    said = ", ".join(f"{field} {_worded(payload.get(field))}" for field in fields)
    return f"{name} ({said})" if said else name


def _answer_checks(expect: Expect, payload: Mapping[str, Any], own_web: bool) -> Iterator[Check]:
    answer, calls = str(payload["answer"]), list(payload["tool_calls"])
    yield Check(payload["status"] == "answered", "the query is answered", str(payload["status"]))
    for text in (*expect.answer_contains, *(expect.answer_contains_locally if own_web else ())):
        yield Check(_plain(text) in _plain(answer), f"the answer contains “{text}”", answer)
    for text in expect.answer_excludes:
        yield Check(_plain(text) not in _plain(answer), f"the answer does not contain “{text}”", answer)
    used = ", ".join(f"{call['tool']} ({_ending(call)})" for call in calls) or "no tool"
    for tool in expect.tools:
        succeeded = any(call["tool"] == tool and not call.get("error") for call in calls)
        yield Check(succeeded, f"{tool} is used", used)
    if expect.no_tools:
        yield Check(not calls, "no tool is used", used)
    if expect.cites_source:
        sources = [source for call in calls for source in call.get("sources", ())]
        yield Check(any(source in answer for source in sources), "the answer names a source of its tools", answer)
    if expect.thinking is not None:
        thinking = str(payload["thinking"])
        what = "the thinking is shown" if expect.thinking else "there is no thinking"
        yield Check(bool(thinking) is expect.thinking, what, thinking or "none")


def _in_order(wanted: Sequence[str], subjects: Iterable[str]) -> bool:
    remaining = iter(subjects)
    return all(subject in remaining for subject in wanted)


def _ending(call: Mapping[str, Any]) -> str:
    error = call.get("error")
    return f"failed: {error['message']}" if error else "succeeded"


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN_CHARS else f"{line[: SHOWN_CHARS - 1]}…"

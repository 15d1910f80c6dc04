"""Acceptance stories: YAML files of questions, and the expectations of the answers and of the bus."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from local.bus.vocabulary import Mode
from local.core import config
from local.core.config import Settings
from local.core.errors import ConfigError
from local.permissions.messages import Decision


class Expect(Settings):
    """The expectations of one answer. Texts are compared without regard to case and line breaks."""

    answer_contains: tuple[str, ...] = ()
    answer_excludes: tuple[str, ...] = ()
    answer_contains_locally: tuple[str, ...] = ()  # only where the web is the one that the runner brought along
    cites_source: bool = False  # the answer names an address that a tool of this turn got its text from
    tools: tuple[str, ...] = ()  # each was called, and at least one of its calls succeeded
    unused_tools: tuple[str, ...] = ()  # no call of these succeeded
    no_tools: bool = False
    thinking: bool | None = None  # whether the model must have thought; None does not ask

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if self.no_tools and (self.tools or self.cites_source):
            raise ValueError("no_tools contradicts tools and cites_source; keep one of them")
        return self


class Saying(Settings):
    """An expectation of a message's fields: one of these alternatives must match; without any, every message does.

    A field's value is the expected one, a list of possible ones, `{from: 1, to: 5}`, or `{contains: text}` for a text,
    or for a list with an element that contains it.
    """

    one_of: tuple[dict[str, Any], ...] = ()


class Awaited(Saying):
    """A message that must come after an answer. Written as its subject or, with conditions, as `subject: [{field:
    value, …}, …]`.
    """

    subject: str

    @model_validator(mode="before")
    @classmethod
    def _from_line(cls, line: object) -> object:
        match line:
            case str(subject):
                return {"subject": subject}
            case {"subject": _}:
                return line
            case dict() if len(line) == 1:
                [(subject, one_of)] = line.items()
                return {"subject": subject, "one_of": tuple(one_of) if isinstance(one_of, list) else one_of}
        raise ValueError("expected a subject, or subject: [{field: value}]")


class Remembered(Saying):
    """An engram that a search of the memory must find at the end of the story."""

    query: str = Field(min_length=1)


class Approval(Settings):
    """A request for approval by a call of `tool` during a turn, and the decision about it; `answer` is for a question
    of the model. Of the calls it is the first that is not decided yet and says what `args` say; its card, the
    `approval.request`, must say what `card` says. Where it may come `often`, any number of them is decided so, or none.
    """

    tool: str = Field(min_length=1)
    args: dict[str, Any] = Field({})
    decision: Decision = "allow"
    answer: str | None = None
    card: dict[str, Any] = Field({})
    often: bool = False


class Command(Settings):
    """A `local2` command, without that word, to run on the system of the story. Its output `says` these texts and
    `conceals` those; then the messages in `wait_for` must come, from any sender.
    """

    run: str = Field(min_length=1)
    says: tuple[str, ...] = ()
    conceals: tuple[str, ...] = ()
    wait_for: tuple[Awaited, ...] = ()


class FilesExpect(Settings):
    """The files that the workspace must contain, and those that it must not."""

    present: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()


class StoryTurn(Settings):
    """One question of a story. `new_session` asks it in a new conversation, which the later turns continue. It is
    asked in a `mode`, if it names one. `approvals` are decided while it is answered; a request that matches none of
    these is denied, and fails the story. Without `approvals`, not even an empty list, no person is connected. Before
    the question `skills` are added (names and contents of SKILL.md), the workspace `instructs` by its LOCAL2.md, and
    its owner `trusts` it or withdraws that.

    `kills` names participants to kill, each as soon as a message has come.

    After the answer the messages in `wait_for` must come; then the answer is rated, if `feedback` is set, its changes
    are undone, if `undo` is set, the `files` of the workspace are checked, and `commands` are run.
    """

    query: str = Field(min_length=1)
    new_session: bool = False
    skills: dict[str, str] = Field({})
    instructs: str | None = None
    trusts: bool | None = None
    kills: dict[str, Awaited] = Field({})
    mode: Mode | None = None
    approvals: tuple[Approval, ...] | None = None
    expect: Expect = Expect()
    wait_for: tuple[Awaited, ...] = ()
    feedback: Literal[-1, 1] | None = None
    undo: bool = False
    files: FilesExpect = FilesExpect()
    commands: tuple[Command, ...] = ()

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if self.mode is not None and self.approvals is None:
            raise ValueError("mode needs approvals, even an empty list: they stand for a connected person")
        return self


class BusExpect(Settings):
    """The expectations of the subjects seen on the bus during the whole story, in order."""

    present: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    in_order: tuple[str, ...] = ()  # others may come in between


class Story(Settings):
    """One story. `wait_for` names messages that come during it or after the last answer, `jobs` the expected result of
    a job that was made in it and runs once; `flags` are options of its system, `more_participants` its additional
    participants. A story that `needs` the sandbox is skipped on a machine without; one that needs the local web uses
    it also with a real model, and `not_opened` are the paths there which must not be opened. With `obedient_stand_in`
    the stand-in obeys instructions in what it reads. `mcp_servers` are Python programs beside the story, by their
    names in `mcp.json`.
    """

    id: str = Field(min_length=1)
    title: str
    description: str = ""
    flags: tuple[str, ...] = ()
    more_participants: tuple[str, ...] = ()
    needs: tuple[Literal["sandbox", "own_web"], ...] = ()
    mcp_servers: dict[str, str] = Field({})
    turns: tuple[StoryTurn, ...] = Field(min_length=1)
    bus: BusExpect = BusExpect()
    wait_for: tuple[Awaited, ...] = ()
    jobs: tuple[Awaited, ...] = ()
    memory: tuple[Remembered, ...] = ()
    not_opened: tuple[str, ...] = ()
    obedient_stand_in: bool = False

    @property
    def changes_settings(self) -> bool:
        """Whether the story puts something into the settings of its system."""
        changed = (turn.skills or turn.instructs or turn.trusts is not None for turn in self.turns)
        return self.has_commands or any(changed)

    @property
    def has_commands(self) -> bool:
        """Whether the story runs commands, for which it has a separate system."""
        return any(turn.commands for turn in self.turns)

    @property
    def has_deaths(self) -> bool:
        """Whether the story kills anybody."""
        return any(turn.kills for turn in self.turns)

    @property
    def stage(self) -> tuple[object, ...]:
        """Return the key that stories on one system share."""
        return self.flags, self.more_participants, "own_web" in self.needs, self.id if self.has_commands else ""


def load_story(path: Path) -> Story:
    """Read a story. Raises `ConfigError` that names file, line and key."""
    if not path.is_file():
        raise ConfigError(f"{path}: no such story; expected a YAML file")
    return config.load(path.stem, Story, [path.parent])


def find_stories(names: list[str], folder: Path) -> list[Path]:
    """The files of the stories called `names`: each a path, or the beginning of a name in `folder` ("S1"); none
    named means all of them. Raises `ConfigError`."""
    known = sorted(folder.glob("*.yaml"), key=_place)
    if not names:
        if not known:
            raise ConfigError(f"{folder}: no stories there; name the files to play")
        return known
    return [path for name in names for path in _named(name, known)]


def _place(path: Path) -> tuple[int, str]:
    """S9 comes before S10."""
    number = re.search(r"\d+", path.stem)
    return int(number[0]) if number else 0, path.stem


def _named(name: str, known: list[Path]) -> list[Path]:
    if name.endswith(".yaml"):
        return [Path(name)]
    found = [path for path in known if path.stem == name or path.stem.startswith(f"{name}_")]
    if not found:
        raise ConfigError(f"there is no story {name}; there are {', '.join(path.stem for path in known) or 'none'}")
    return found


# Compares a story's expectations with the events. No I/O.

SHOWN_CHARS = 120


@dataclass(frozen=True, slots=True)
class Check:
    """One checked expectation: whether it was met, its description, and the actual result."""

    passed: bool
    what: str
    found: str

    def __str__(self) -> str:
        return f"{'✓' if self.passed else '✗'} {self.what}: {_shortened(self.found)}"


def check_answer(expect: Expect, payload: Mapping[str, Any], *, own_web: bool) -> list[Check]:
    """Check one answer of POST /query. `own_web`: all results are from the runner's own pages."""
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
        came = [message for message in of_subject if matches(one, message["payload"])]
        found = came[:1] or of_subject[-1:] or messages
        what = f"{one.subject} comes{_wanted(one)}"
        checks.append(Check(bool(came), what, ", ".join(_told(one, m["subject"], m["payload"]) for m in found)))
    return checks


def check_card(approval: Approval, asked: Mapping[str, Any]) -> Check:
    """Check the card of a call that needs approval, the payload of an `approval.request`."""
    card = Saying(one_of=(approval.card,) if approval.card else ())
    return Check(
        matches(card, asked), f"{approval.tool} needs approval{_wanted(card)}", _told(card, approval.tool, asked)
    )


def check_command(command: Command, status: int, output: str) -> list[Check]:
    """Check a command's output and exit status."""
    name = f"local2 {command.run}"
    checks = [Check(status == 0, f"{name} succeeds", output if status else "it does")]
    checks += [Check(_plain(text) in _plain(output), f"{name} says “{text}”", output) for text in command.says]
    concealed = ((text, _plain(text) in _plain(output)) for text in command.conceals)
    return [*checks, *(Check(not found, f"{name} does not say “{text}”", output) for text, found in concealed)]


def call_line(asked: Mapping[str, Any]) -> str:
    """A call that needs approval, in one line."""
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
    """Check that a path was not requested, with any query string; `opened` are the requested paths with their
    queries."""
    return [
        Check(not found, f"nobody opens {path}", ", ".join(found) or "nobody has")
        for path in paths
        for found in [[one for one in opened if one.startswith(path)]]
    ]


def check_memory(remembered: Remembered, hits: Sequence[Mapping[str, Any]]) -> Check:
    """Check the result of a search of the memory."""
    fitting = [hit for hit in hits if matches(remembered, hit)]
    found = ", ".join(_told(remembered, f"“{hit['query']}”", hit) for hit in fitting[:1] or hits) or "nothing"
    return Check(bool(fitting), f"the memory finds “{remembered.query}”{_wanted(remembered)}", found)


def matches(expected: Saying, payload: Mapping[str, Any]) -> bool:
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
    """Describe the actual result, with the expected fields."""
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
    for tool in expect.unused_tools:
        succeeded = any(call["tool"] == tool and not call.get("error") for call in calls)
        yield Check(not succeeded, f"{tool} is not used", used)
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

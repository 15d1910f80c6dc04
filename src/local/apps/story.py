"""What an acceptance story is: a YAML file of questions, and what must be true of the answers and of the bus."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from local import config
from local.config import Settings
from local.errors import ConfigError
from local.protocol.permission_messages import Decision
from local.protocol.safety import Mode


class Expect(Settings):
    """What must be true of one answer. Texts are looked for without regard to case and line breaks."""

    answer_contains: tuple[str, ...] = ()
    answer_excludes: tuple[str, ...] = ()
    answer_contains_locally: tuple[str, ...] = ()  # only where the web is the one that the runner brought along
    cites_source: bool = False  # the answer names an address that a tool of this turn got its text from
    tools: tuple[str, ...] = ()  # each was called, and at least one of its calls succeeded
    no_tools: bool = False
    thinking: bool | None = None  # whether the model must have thought; None does not ask

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if self.no_tools and (self.tools or self.cites_source):
            raise ValueError("no_tools contradicts tools and cites_source; keep one of them")
        return self


class Saying(Settings):
    """What something must say: one of these, field by field; anything if there are none.

    A field's value is the one to find, a list of those that will do, `{from: 1, to: 5}`, or `{contains: text}` of a
    text, or of a list in which one has it.
    """

    one_of: tuple[dict[str, Any], ...] = ()


class Awaited(Saying):
    """A message that comes after an answer. Written as its subject or, if it must say something, as
    `subject: [{field: value, …}, …]`."""

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
    """A question that a call of `tool` asks during a turn, and what is decided of it; `answer` is for a question of
    the model. Of the calls it is the first that is not decided yet and says what `args` say; its card, the
    `approval.request`, must say what `card` says. Where it may come `often`, any number of them is decided so, or none.
    """

    tool: str = Field(min_length=1)
    args: dict[str, Any] = Field({})
    decision: Decision = "allow"
    answer: str | None = None
    card: dict[str, Any] = Field({})
    often: bool = False


class Command(Settings):
    """A command of `local2` as one types it, without that word, on the system of the story. What it prints `says` these
    texts and `conceals` those; then what it has to `wait_for` comes, whoever sends it."""

    run: str = Field(min_length=1)
    says: tuple[str, ...] = ()
    conceals: tuple[str, ...] = ()
    wait_for: tuple[Awaited, ...] = ()


class FilesExpect(Settings):
    """Which files the workspace must have, and which it must not have."""

    present: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()


class StoryTurn(Settings):
    """One question. `new_session` asks it in a conversation of its own, which the turns after it go on with. It is
    asked in a `mode`, if it names one. `approvals` are asked while it is answered; what asks and is none of these is
    denied, and fails the story. Without any, not even an empty list, nobody is there who could be asked. Before it is
    asked `skills` are dropped in, names and what SKILL.md says, the workspace `instructs` by its LOCAL2.md, and its
    owner `trusts` it, or does so no more.
    `kills` names participants that are killed meanwhile, each as soon as a message has come.

    What it has to `wait_for` comes before anything else is done; then the answer is rated, if `feedback` says how, what
    it has changed is undone, if it says `undo`, the `files` of the workspace are looked at, and `commands` are given.
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
            raise ValueError("mode wants approvals, even if the list is empty: somebody who is there")
        return self


class BusExpect(Settings):
    """What must be true of the subjects seen on the bus during the whole story, in the order they were seen."""

    present: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    in_order: tuple[str, ...] = ()  # others may come in between


class Story(Settings):
    """One story. `wait_for` names what comes during it or after the last answer and is waited for, `jobs` what comes of
    a job that was made in it, which is done once; `flags` are those that its system is started with,
    `more_participants` who takes part there beside the usual ones. One that `needs` the sandbox is left out on a
    machine without; one that needs our own web has it with a real model, too, and `not_opened` are the paths there
    which nobody may open. In one with an `obedient_stand_in` that does what it reads. `mcp_servers` are programs in
    Python beside it, by the names that `mcp.json` is to give them.
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
        """Whether the story gives commands, for which it has a system of its own."""
        return any(turn.commands for turn in self.turns)

    @property
    def has_deaths(self) -> bool:
        """Whether the story kills anybody."""
        return any(turn.kills for turn in self.turns)

    @property
    def stage(self) -> tuple[object, ...]:
        """What is alike in stories that one system plays."""
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

"""A conversation in a terminal: a prompt, an answer, and so on."""

from __future__ import annotations

import os
import select
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any, Literal
from urllib.parse import quote

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent

from local.cli.client import AnsweringSystem, SystemClient
from local.cli.commands import approvals_of, is_plain, plain_renderer, terminal_renderer
from local.cli.conversation import ExitStatus, ask
from local.cli.main import date_and_time, visible
from local.cli.render import waterfall
from local.cli.renderer import Json, QueryProgress, Renderer
from local.core.config_file import suggestion
from local.core.errors import LocalError

# The slash commands of a chat. Each is a request that a program could make as well.

DEFAULT_MODEL = "default"  # the one of the settings
LISTED = 20
PREVIEW = 60
SHOWN_ID = 12  # characters, as `local2 sessions list` shows


class Leave(Exception):
    """The signal that the user ends the chat."""


class BadCommand(LocalError):
    """The error for a chat command that is unknown or impossible now; the text says what is possible."""

    kind = "bad_command"


def obey(chat: Chat, text: str) -> None:
    """Execute a chat command, a line that begins with a slash. Raises `Leave`, `BadCommand`, `NoAnswer`."""
    name, _, argument = text[1:].strip().partition(" ")
    command = COMMANDS.get(name)
    if command is None:
        raise BadCommand(f"there is no /{name}; /help lists the commands")
    command(chat, argument.strip())


def _new(chat: Chat, argument: str) -> None:
    """start a new conversation"""
    chat.resume(token_hex(16))
    chat.print_note("new conversation")


def _sessions(chat: Chat, argument: str) -> None:
    """list the latest conversations"""
    rows = [each for each in chat.system.find().sessions() if not each["incognito"]][:LISTED]
    lines = [
        f"{each['session_id'][:SHOWN_ID]}  {date_and_time(each['updated_at'])}  {_short(each['title'])}"
        for each in rows
    ]
    chat.print_note("\n".join(lines) or "there are no conversations yet")


def _resume(chat: Chat, argument: str) -> None:
    """ID: continue a conversation; the beginning of its id is enough"""
    found = [each["session_id"] for each in chat.system.find().sessions() if each["session_id"].startswith(argument)]
    if not argument:
        raise BadCommand("/resume ID; /sessions lists the latest")
    if not found:
        raise BadCommand(f"no conversation begins with “{argument}”; /sessions lists the latest")
    if len(found) > 1:
        raise BadCommand(f"{len(found)} conversations begin with “{argument}”: {', '.join(found[:LISTED])}")
    chat.options.model = None  # that conversation has its own
    chat.resume(found[0])


def _attach(chat: Chat, argument: str) -> None:
    """FILE: send a file with the next question"""
    try:
        content = Path(argument).expanduser().read_bytes()
    except OSError as error:
        raise BadCommand(f"{argument or 'no file'}: {error.strerror}") from None
    file = chat.system.find().attach(Path(argument).name, content)
    chat.options.attachments.append(file)
    chat.print_note(f"{file['name']}, {file['size']} bytes, is sent with the next question {file['note']}".rstrip())


def _retry(chat: Chat, argument: str) -> None:
    """ask the last question again"""
    chat.ask(_last(chat)["query"])


def _edit(chat: Chat, argument: str) -> None:
    """put the last question into the prompt"""
    chat.typed = _last(chat)["query"]


def _memory(chat: Chat, argument: str) -> None:
    """QUESTION: search the memory"""
    hits = chat.system.find().recall(argument or " ")
    lines = [f"{hit['engram_id'][:8]}  {date_and_time(hit['asked_at'])}  {_short(hit['query'])}" for hit in hits]
    chat.print_note("\n".join(lines) or "nothing relevant is remembered")


def _pin(chat: Chat, argument: str) -> None:
    """ID: use this memory in every conversation"""
    chat.system.find().request("POST", f"/memory/{_engram(chat, argument)}/pin")
    chat.print_note("pinned")


def _forget(chat: Chat, argument: str) -> None:
    """ID: delete a memory permanently"""
    engram = _engram(chat, argument)
    repeated = chat.system.find().request("DELETE", f"/memory/{engram}").get("repeated_in") or []
    also = f"; {len(repeated)} other answers may repeat it: {', '.join(each[:8] for each in repeated)}"
    chat.print_note(f"removed{also if repeated else ''}")


def _rate(chat: Chat, argument: str) -> None:
    """+ or -: rate the last answer"""
    if argument not in ("+", "-"):
        raise BadCommand("/rate + or /rate -")
    chat.system.find().rate(_last(chat)["query_id"], 1 if argument == "+" else -1)
    chat.print_note("rated")


def _tools(chat: Chat, argument: str) -> None:
    """list the processes that serve tools"""
    tools = [each for each in _participants(chat) if each["kind"] == "tool"]
    chat.print_note("\n".join(f"{each['name']}  {each['state']}" for each in tools) or "there are none")


def _model(chat: Chat, argument: str) -> None:
    """NAME: choose the model that answers from now on; without a name, list the models"""
    found = chat.system.find().request("GET", "/models")
    there = [each for each in found["models"] if each["chat"]]
    if not argument:
        known = {each["session_id"]: each.get("model") for each in chat.system.find().sessions()}
        chosen = chat.options.model or known.get(chat.options.session_id) or DEFAULT_MODEL
        chosen = found["default"] if chosen == DEFAULT_MODEL else chosen
        lines = [f"{'•' if each['id'] == chosen else ' '} {each['id']}  {_about(each)}".rstrip() for each in there]
        chat.print_note("\n".join(lines or [f"• {found['default']}"]))
        return
    names = {name: each["id"] for each in there for name in (each["name"], f"{each['provider']}/{each['name']}")}
    names |= {each["id"]: each["id"] for each in there} | {name: name for name in (DEFAULT_MODEL, found["default"])}
    name = argument if argument in names else f"{argument}:latest"
    if name not in names:
        unfit = next((each["unfit"] for each in found["models"] if argument in (each["id"], each["name"])), "")
        raise BadCommand(
            f"{argument} cannot be chosen: {unfit}" if unfit
            else f"there is no model {argument}; {suggestion(argument, [each['id'] for each in there])}"
        )  # fmt: skip
    chat.options.model = names[name]
    chat.print_note(f"{found['default'] if name == DEFAULT_MODEL else names[name]} answers from now on")


def _about(model: dict[str, Any]) -> str:
    size = model["size"] and f"{model['size'] / 1e9:.1f} GB"
    return " · ".join(filter(None, [size, model["default"] and "default", model["loaded"] and "loaded"]))


def _profile(chat: Chat, argument: str) -> None:
    """NAME: choose the kind of assistant that answers from now on; without a name, list them"""
    found = chat.system.find().request("GET", "/profiles")
    names = {name: each["name"] for each in found["profiles"] for name in (each["name"], *each["aliases"])}
    if not argument:
        chosen = chat.options.profile or "general"
        lines = [
            f"{'•' if each['name'] == chosen else ' '} {each['name']}  {each['description']}"
            for each in found["profiles"]
        ]
        chat.print_note("\n".join([*lines, *found["problems"]]))
        return
    if argument not in names:
        raise BadCommand(f"there is no profile {argument}; {suggestion(argument, names)}")
    chat.options.profile = names[argument]
    chat.print_note(f"{names[argument]} answers from now on")


def _why(chat: Chat, argument: str) -> None:
    """show how the time of the last answer was spent"""
    chat.print_note("\n".join(waterfall(chat.system.find().trace(_last(chat)["query_id"]))))


def _export(chat: Chat, argument: str) -> None:
    """FILE: write this conversation as Markdown"""
    text = chat.system.find().export(chat.options.session_id)
    path = Path(argument or f"{chat.options.session_id[:8]}.md").expanduser()
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadCommand(f"{path}: {error.strerror}") from None
    chat.print_note(f"the conversation is in {path}")


def _think(chat: Chat, argument: str) -> None:
    """show, fold or hide: the model's thinking"""
    if argument not in ("show", "fold", "hide"):
        raise BadCommand("/think show, /think fold or /think hide")
    chat.options.think = argument  # type: ignore[assignment]


def _help(chat: Chat, argument: str) -> None:
    """this list"""
    chat.print_note("\n".join(f"/{name:9} {command.__doc__}" for name, command in COMMANDS.items()))


def _quit(chat: Chat, argument: str) -> None:
    """end the chat, as Ctrl-D does"""
    raise Leave


COMMANDS: dict[str, Callable[[Chat, str], None]] = {
    function.__name__[1:]: function
    for function in (
        _new, _sessions, _resume, _attach, _retry, _edit, _memory, _pin, _forget, _rate, _tools, _model, _profile, _why,
        _export, _think, _help, _quit,
    )
}  # fmt: skip


def _last(chat: Chat) -> dict[str, Any]:
    if chat.last is None:
        raise BadCommand("nothing has been answered here yet")
    return chat.last


def _engram(chat: Chat, argument: str) -> str:
    """The whole id of an engram. Raises `BadCommand`."""
    if not argument:
        raise BadCommand("an id is missing; /memory QUESTION lists the ids")
    return quote(chat.system.find().whole_engram_id(argument), safe="")


def _participants(chat: Chat) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = chat.system.find().request("GET", "/participants")["participants"]
    return found


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= PREVIEW else f"{line[: PREVIEW - 1]}…"


HISTORY = 200  # questions of this conversation that the arrow keys bring back


@dataclass(slots=True)
class ChatOptions:
    """The options of a chat, which can be changed during the chat. `tools` are those that the model is offered, as in
    POST /query; `attachments` are sent with the next question.
    """

    session_id: str
    think: Literal["show", "fold", "hide"] = "fold"
    incognito: bool = False
    tools: Json = field(default_factory=dict)
    verbose: bool = False
    mode: str | None = None
    profile: str | None = None
    model: str | None = None
    attachments: list[Json] = field(default_factory=list)


class Chat:
    """One conversation in the terminal: it reads questions and commands until the user leaves. `last` is the latest
    answer, `typed` the text typed during it, which is put into the next prompt.
    """

    def __init__(self, system: AnsweringSystem, options: ChatOptions) -> None:
        self.system, self.options = system, options
        self.last: Json | None = None
        self.typed = ""
        self._prompt: PromptSession[str] = PromptSession(
            history=InMemoryHistory(), key_bindings=_keys(), multiline=True, prompt_continuation="  ",
            completer=WordCompleter([f"/{name}" for name in COMMANDS], sentence=True), complete_while_typing=False,
            enable_open_in_editor=True, bottom_toolbar=None if is_plain() else self._toolbar,
        )  # fmt: skip
        self._model = ""

    def run(self) -> int:
        """Run the chat; returns the exit status."""
        self.resume(self.options.session_id)
        self._model = str(self.system.find().health().get("model") or "")
        while True:
            try:
                self._print_goals()
                text = self._read()
                if text:
                    self._answer(text)
            except (EOFError, Leave):
                return ExitStatus.ANSWERED
            except LocalError as error:
                self.print_note(f"{error}")

    def print_note(self, text: str) -> None:
        """Print lines of the program among the answers."""
        print("\n".join(visible(line) for line in text.split("\n")))  # noqa: T201

    def ask(self, question: str) -> None:
        """Ask in this conversation and show the answer."""
        body: Json = {"query": question, "session_id": self.options.session_id, "query_id": token_hex(16)}
        if self.options.attachments:
            body["attachments"] = [file["id"] for file in self.options.attachments]
        if self.options.incognito:
            body["incognito"] = True
        if self.options.tools:
            body["tools"] = self.options.tools
        body |= {
            name: each for name in ("mode", "profile", "model") if (each := getattr(self.options, name)) is not None
        }
        progress = QueryProgress()
        with self._typing_kept():
            approvals = approvals_of(self.system, keep=self._keep)
            ask(self.system.find_again, body, self._renderer(), self.print_note, progress=progress, approvals=approvals)
        self.options.attachments = []
        if progress.end is not None and progress.end.name == "response":
            self.last = progress.end.data
            self._model = str(self.last.get("model") or self._model)

    def resume(self, session_id: str) -> None:
        """Continue a conversation; the arrow keys recall its questions."""
        self.options.session_id, self.last = session_id, None
        known = {each["session_id"] for each in self.system.find().sessions()}
        turns = self.system.find().session(session_id)["turns"][-HISTORY:] if session_id in known else []
        self._prompt.history = self._prompt.default_buffer.history = InMemoryHistory([turn["query"] for turn in turns])
        if turns:
            self.last = turns[-1]
            self.print_note(f"… {turns[-1]['query']}\n\n{turns[-1]['answer']}\n")

    def _print_goals(self) -> None:
        with suppress(LocalError):  # the next question reports the error
            client = self.system.find()
            for line in goal_words(client, client.health()):
                self.print_note(line)

    def _answer(self, text: str) -> None:
        if text.startswith("/"):
            obey(self, text)
        else:
            self.ask(text)

    def _read(self) -> str:
        typed, self.typed = self.typed, ""
        while True:
            try:
                return self._prompt.prompt("› ", default=typed).strip()
            except KeyboardInterrupt:  # clears the line
                typed = ""

    def _keep(self, typed: str) -> None:
        self.typed += typed

    def _renderer(self) -> Renderer:
        if is_plain():
            return plain_renderer(sys.stdout.write, verbose=self.options.verbose)
        return terminal_renderer(self.options.think, verbose=self.options.verbose)

    def _toolbar(self) -> FormattedText:
        usage = (self.last or {}).get("usage") or {}
        context = usage.get("context") or {}
        gauge = f" · {100 * context['used'] // context['limit']} % of the window" if context.get("limit") else ""
        files = f" · {len(self.options.attachments)} file(s)" if self.options.attachments else ""
        secret = " · incognito" if self.options.incognito else ""
        hints = "⏎ send · Alt-⏎ line · Ctrl-C stop · Ctrl-D end · /help"
        return FormattedText([("", f" {visible(self._model)}{gauge}{secret}{files}   {hints}")])

    @contextmanager
    def _typing_kept(self) -> Iterator[None]:
        """Hide typed text during an answer, and keep it for the next prompt."""
        number = sys.stdin.fileno()
        before = termios.tcgetattr(number)
        quiet = termios.tcgetattr(number)
        quiet[3] = quiet[3] & ~(termios.ECHO | termios.ICANON) | termios.NOFLSH  # Ctrl-C forgets nothing either
        termios.tcsetattr(number, termios.TCSADRAIN, quiet)
        try:
            yield
        finally:
            self.typed += _pending(number)
            termios.tcsetattr(number, termios.TCSADRAIN, before)


def _pending(number: int) -> str:
    typed = b""
    while select.select([number], [], [], 0)[0] and (piece := os.read(number, 4096)):
        typed += piece
    return "".join(char for char in typed.decode("utf-8", "ignore") if char.isprintable() or char == "\n").strip("\n")


def _keys() -> KeyBindings:
    """Enter sends, unless the line ends with a backslash or three quotes are open; Alt-Enter makes a line."""
    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.text.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        elif buffer.text.count('"""') % 2:
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys


# The heartbeat's remarks on goals while their owner was away, shown before the next prompt.

REFLECTION, UNSEEN = "reflection", "goals_unseen"


def goal_words(client: SystemClient, health: dict[str, Any]) -> list[str]:
    """Return a line for each goal with an unread remark; the remarks then count as read. They are requested only if
    `health` reports some. Raises as the client does.
    """
    rows = health.get("participants") or []
    if not any(row["name"] == REFLECTION and (row.get("counters") or {}).get(UNSEEN) for row in rows):
        return []
    unseen = [goal for goal in client.request("GET", "/goals")["goals"] if not goal["is_seen"]]
    for goal in unseen:
        client.request("PATCH", f"/goals/{goal['goal_id']}", {"seen": goal["words_at"], "by": "terminal"})
    return [f"{date_and_time(goal['words_at'])}, {goal['text']}: {goal['words']}" for goal in unseen]

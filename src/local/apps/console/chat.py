"""A conversation in a terminal: a prompt, an answer, and so on."""

from __future__ import annotations

import os
import select
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Literal

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent

from local.apps.console.answering_system import AnsweringSystem
from local.apps.console.commands import approvals_of, is_plain, plain_renderer, terminal_renderer
from local.apps.console.conversation import ExitStatus, ask
from local.apps.console.goal_words import goal_words
from local.apps.console.query_progress import Json, QueryProgress
from local.apps.console.renderer import Renderer
from local.apps.console.slash_commands import COMMANDS, Leave, obey
from local.apps.terminal import visible
from local.errors import LocalError

HISTORY = 200  # questions of this conversation that the arrow keys bring back


@dataclass(slots=True)
class ChatOptions:
    """What the user has chosen, and can choose anew while talking. `tools` are those that the model is offered, as
    POST /query is told; `attachments` go with the next question."""

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
    """Reads questions and commands until the user leaves. `last` is the latest answer, `typed` what was typed while it
    came: it stands in the next prompt."""

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
        """Talk; gives the exit status."""
        self.resume(self.options.session_id)
        self._model = str(self.system.find().health().get("model") or "")
        while True:
            try:
                self._tell_goals()
                text = self._read()
                if text:
                    self._answer(text)
            except (EOFError, Leave):
                return ExitStatus.ANSWERED
            except LocalError as error:
                self.say(f"{error}")

    def say(self, text: str) -> None:
        """Some lines of our own, where the answers stand."""
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
            ask(self.system.find_again, body, self._renderer(), self.say, progress=progress, approvals=approvals)
        self.options.attachments = []
        if progress.end is not None and progress.end.name == "response":
            self.last = progress.end.data
            self._model = str(self.last.get("model") or self._model)

    def resume(self, session_id: str) -> None:
        """Go on with a conversation: its questions can be brought back with the arrow keys."""
        self.options.session_id, self.last = session_id, None
        known = {each["session_id"] for each in self.system.find().sessions()}
        turns = self.system.find().session(session_id)["turns"][-HISTORY:] if session_id in known else []
        self._prompt.history = self._prompt.default_buffer.history = InMemoryHistory([turn["query"] for turn in turns])
        if turns:
            self.last = turns[-1]
            self.say(f"… {turns[-1]['query']}\n\n{turns[-1]['answer']}\n")

    def _tell_goals(self) -> None:
        with suppress(LocalError):  # the next question says what is wrong
            client = self.system.find()
            for line in goal_words(client, client.health()):
                self.say(line)

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
        hints = "⏎ send · Alt-⏎ line · Ctrl-C stop · Ctrl-D leave · /help"
        return FormattedText([("", f" {visible(self._model)}{gauge}{secret}{files}   {hints}")])

    @contextmanager
    def _typing_kept(self) -> Iterator[None]:
        """Nothing that is typed meanwhile shows; it is kept for the next prompt."""
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

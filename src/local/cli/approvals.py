"""The prompt in the terminal for approvals and for questions of the model."""

from __future__ import annotations

import os
import select
import sys
import termios
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from local.bus.vocabulary import CLARIFICATION, PROPOSE_PLAN, TRUST_FOLDER
from local.cli.main import visible
from local.core.errors import NoAnswer

Json = dict[str, Any]
MOST_CHARACTERS = 2000  # of one argument
LAST_CHARACTERS = 500  # of these so many are from its end
CHOICES = {
    "y": "allow", "yes": "allow", "a": "allow_session", "always": "allow_session", "n": "deny", "no": "deny",
}  # fmt: skip
PLAN_KEYS = (
    "[y] approve · [e] approve, and change files without asking · [n] reject, or type what should be different › "
)
FOLDER_KEYS = "[y] trust it · [n] do not trust it › "
STRANGERS = "This conversation contains untrusted content from {}"
KEYS = "[y] once · [a] in this conversation · [n] no › "


class ApprovalPrompt:
    """The prompt that asks in the terminal for approvals, one at a time, while the answer is followed. `decide` sends
    a decision to the system and raises `NoAnswer`; `keep` receives text that was typed before an approval was
    requested and therefore answers nothing.
    """

    def __init__(
        self,
        decide: Callable[[str, Json], object],
        write: Callable[[str], object],
        keep: Callable[[str], object] = lambda text: None,
    ) -> None:
        self._decide, self._write, self._keep = decide, write, keep
        self._waiting: OrderedDict[str, Json] = OrderedDict()
        self._seen: set[str] = set()
        self._shown = ""
        self._terminal: list[Any] | None = None  # its settings before something was asked

    @property
    def is_open(self) -> bool:
        """Whether something is asked."""
        return bool(self._waiting)

    def receive(self, name: str, data: Json) -> None:
        """Receive an event of the query: an approval request, or a decision, perhaps made elsewhere."""
        call_id = data["call_id"]
        if name == "approval" and call_id not in self._seen:
            self._seen.add(call_id)
            self._waiting[call_id] = data
        elif name == "decision" and self._waiting.pop(call_id, None) is not None and self._shown == call_id:
            self._write(f"\n{data['decision']}, by {visible(data['by'])}\n")
            self._shown = ""

    def poll(self) -> None:
        """Show the next request, and process a typed line, if there is one. Never waits."""
        if not self._waiting:
            self.close()
            return
        call_id, asked = next(iter(self._waiting.items()))
        if self._shown != call_id:
            self._listen()
            self._write(question_of(asked))
            self._shown = call_id
        if select.select([sys.stdin], [], [], 0)[0]:
            self._take(call_id, asked, os.read(sys.stdin.fileno(), 4096).decode("utf-8", "replace").strip())

    def close(self) -> None:
        """Restore the terminal's settings."""
        if self._terminal is not None:
            termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, self._terminal)
            self._terminal = None

    def _take(self, call_id: str, asked: Json, line: str) -> None:
        body = _answer_to(asked, line)
        if body is None:
            self._write({PROPOSE_PLAN: PLAN_KEYS, TRUST_FOLDER: FOLDER_KEYS}.get(asked["tool"], KEYS))
            return
        del self._waiting[call_id]
        self._shown = ""
        try:
            self._decide(call_id, {**body, "by": "terminal"})
        except NoAnswer as error:
            self._write(f"{visible(str(error))}\n")

    def _listen(self) -> None:
        """Echo and read input by lines from now on; earlier input is passed to `keep`."""
        number = sys.stdin.fileno()
        if not os.isatty(number):
            return
        typed = b""
        while select.select([number], [], [], 0)[0] and (piece := os.read(number, 4096)):
            typed += piece
        self._keep(typed.decode("utf-8", "replace"))
        if self._terminal is None:
            self._terminal = termios.tcgetattr(number)
            asking = termios.tcgetattr(number)
            asking[3] |= termios.ECHO | termios.ICANON
            termios.tcsetattr(number, termios.TCSADRAIN, asking)


def question_of(asked: Json) -> str:
    """Return the request as lines that end in a prompt."""
    args, sources = asked.get("args") or {}, asked.get("sources") or ()
    strangers = STRANGERS.format(visible(", ".join(sources)))
    if asked["tool"] == CLARIFICATION:
        options = "".join(f"\n  {number}. {visible(str(one))}" for number, one in enumerate(_options(args), 1))
        why = f"\n{strangers}. It may have influenced this request." if sources else ""
        return f"\n{visible(str(args.get('question', '')))}{options}{why}\nyour answer (empty to skip) › "
    if asked["tool"] == PROPOSE_PLAN:
        steps = args.get("steps")
        lines = [visible(str(step)) for step in steps] if isinstance(steps, list) else []
        numbered = [f"  {number}. {line}" for number, line in enumerate(lines, 1)]
        from_strangers = [f"  {strangers}."] if sources else []
        return "\n".join([f"\nA plan: {visible(str(args.get('title', '')))}", *numbered, *from_strangers, PLAN_KEYS])
    if asked["tool"] == TRUST_FOLDER:
        head = f"Do you trust {visible(str(args.get('folder', '')))}? The assistant is about to read files in it."
        return f"\n{head} {visible(asked.get('why', ''))}\n{FOLDER_KEYS}"
    return "\n".join([f"\n{call_told(asked, MOST_CHARACTERS)}", KEYS])


def call_told(asked: Json, most: int) -> str:
    """Return a call that needs approval as lines, with at most so many characters of each argument. Longer arguments
    are cut in the middle, with a note.
    """
    sources = asked.get("sources") or ()
    whose = f"The agent {visible(asked['agent'])}: " if asked.get("agent") else ""
    head = f"{whose}{visible(asked['tool'])} ({asked.get('level', 'L2')}) needs approval."
    args = asked.get("args") or {}
    told = [
        f"{head} {visible(asked.get('why', ''))}".rstrip(),
        *(f"  {visible(name)}: {_shown(str(value), most, asked['call_id'])}" for name, value in args.items()),
        *([f"  {STRANGERS.format(visible(', '.join(sources)))}."] if sources else []),
    ]
    return "\n".join(told)


def _answer_to(asked: Json, line: str) -> Json | None:
    """Return the body of the decision; None for an invalid line."""
    if asked["tool"] == PROPOSE_PLAN:
        return _answer_to_plan(line)
    if asked["tool"] != CLARIFICATION:
        decision = CHOICES.get(line.lower())
        if asked["tool"] == TRUST_FOLDER and decision == "allow_session":
            return None
        return None if decision is None else {"decision": decision}
    options = _options(asked.get("args") or {})
    if line.isdecimal() and 0 < int(line) <= len(options):
        line = str(options[int(line) - 1])
    return {"decision": "allow", "answer": line} if line else {"decision": "deny"}


def _answer_to_plan(line: str) -> Json | None:
    """Return the decision on a plan; text that is not a key is the wanted change."""
    key = line.lower()
    if key in ("e", "edits"):
        return {"decision": "allow", "mode": "acceptEdits"}
    if CHOICES.get(key) == "allow":
        return {"decision": "allow"}
    if not line:
        return None
    return {"decision": "deny"} if CHOICES.get(key) == "deny" else {"decision": "deny", "answer": line}


def _options(args: Json) -> list[Any]:
    options = args.get("options")
    return options if isinstance(options, list) else []


def _shown(text: str, most: int, call_id: str) -> str:
    if (hidden := len(text) - most) > 0:
        left_out = f"[{hidden} of {len(text)} characters are not shown; see them with: local2 approvals show {call_id}]"
        text = f"{text[: most - LAST_CHARACTERS]}\n{left_out}\n{text[-LAST_CHARACTERS:]}"
    return "\n    ".join(visible(line) for line in text.split("\n"))

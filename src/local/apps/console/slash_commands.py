"""What can be typed in a conversation beside questions: each command is a request that a program could make as well."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from local.apps.console.waterfall import waterfall
from local.apps.terminal import date_and_time
from local.config_fault import suggestion
from local.errors import LocalError

if TYPE_CHECKING:
    from local.apps.console.chat import Chat

DEFAULT_MODEL = "default"  # the one of the settings
LISTED = 20
PREVIEW = 60
SHOWN_ID = 12  # characters, as `local2 sessions list` shows


class Leave(Exception):
    """The user has had enough."""


class BadCommand(LocalError):
    """A command that there is not, or that cannot be obeyed now; the text says what can."""

    kind = "bad_command"


def obey(chat: Chat, text: str) -> None:
    """Do what a line that begins with a slash says. Raises `Leave`, `BadCommand`, `NoAnswer`."""
    name, _, argument = text[1:].strip().partition(" ")
    command = COMMANDS.get(name)
    if command is None:
        raise BadCommand(f"there is no /{name}; /help lists the commands")
    command(chat, argument.strip())


def _new(chat: Chat, argument: str) -> None:
    """begin a new conversation"""
    chat.resume(token_hex(16))
    chat.say("a new conversation")


def _sessions(chat: Chat, argument: str) -> None:
    """list the latest conversations"""
    rows = [each for each in chat.system.find().sessions() if not each["incognito"]][:LISTED]
    lines = [
        f"{each['session_id'][:SHOWN_ID]}  {date_and_time(each['updated_at'])}  {_short(each['title'])}"
        for each in rows
    ]
    chat.say("\n".join(lines) or "there is none yet")


def _resume(chat: Chat, argument: str) -> None:
    """ID: go on with a conversation; the beginning of its id is enough"""
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
    """FILE: send a file along with the next question"""
    try:
        content = Path(argument).expanduser().read_bytes()
    except OSError as error:
        raise BadCommand(f"{argument or 'no file'}: {error.strerror}") from None
    file = chat.system.find().attach(Path(argument).name, content)
    chat.options.attachments.append(file)
    chat.say(f"{file['name']}, {file['size']} bytes, goes with the next question {file['note']}".rstrip())


def _retry(chat: Chat, argument: str) -> None:
    """ask the last question again"""
    chat.ask(_last(chat)["query"])


def _edit(chat: Chat, argument: str) -> None:
    """put the last question into the prompt"""
    chat.typed = _last(chat)["query"]


def _memory(chat: Chat, argument: str) -> None:
    """QUESTION: what is remembered about it"""
    hits = chat.system.find().recall(argument or " ")
    lines = [f"{hit['engram_id'][:8]}  {date_and_time(hit['asked_at'])}  {_short(hit['query'])}" for hit in hits]
    chat.say("\n".join(lines) or "nothing relevant is remembered")


def _pin(chat: Chat, argument: str) -> None:
    """ID: have what was said there in every conversation"""
    chat.system.find().request("POST", f"/memory/{_engram(chat, argument)}/pin")
    chat.say("pinned")


def _forget(chat: Chat, argument: str) -> None:
    """ID: remove something remembered for good"""
    engram = _engram(chat, argument)
    repeated = chat.system.find().request("DELETE", f"/memory/{engram}").get("repeated_in") or []
    also = f"; {len(repeated)} other answers may repeat it: {', '.join(each[:8] for each in repeated)}"
    chat.say(f"removed{also if repeated else ''}")


def _rate(chat: Chat, argument: str) -> None:
    """+ or -: rate the last answer"""
    if argument not in ("+", "-"):
        raise BadCommand("/rate + or /rate -")
    chat.system.find().rate(_last(chat)["query_id"], 1 if argument == "+" else -1)
    chat.say("rated")


def _tools(chat: Chat, argument: str) -> None:
    """list the processes that serve tools"""
    tools = [each for each in _participants(chat) if each["kind"] == "tool"]
    chat.say("\n".join(f"{each['name']}  {each['state']}" for each in tools) or "there is none")


def _model(chat: Chat, argument: str) -> None:
    """NAME: which model answers in this conversation from now on; without a name the list"""
    found = chat.system.find().request("GET", "/models")
    there = [each for each in found["models"] if each["chat"]]
    if not argument:
        known = {each["session_id"]: each.get("model") for each in chat.system.find().sessions()}
        chosen = chat.options.model or known.get(chat.options.session_id) or DEFAULT_MODEL
        chosen = found["default"] if chosen == DEFAULT_MODEL else chosen
        lines = [f"{'•' if each['id'] == chosen else ' '} {each['id']}  {_about(each)}".rstrip() for each in there]
        chat.say("\n".join(lines or [f"• {found['default']}"]))
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
    chat.say(f"{found['default'] if name == DEFAULT_MODEL else names[name]} answers from now on")


def _about(model: dict[str, Any]) -> str:
    size = model["size"] and f"{model['size'] / 1e9:.1f} GB"
    return " · ".join(filter(None, [size, model["default"] and "default", model["loaded"] and "loaded"]))


def _profile(chat: Chat, argument: str) -> None:
    """NAME: which kind of assistant answers from now on; without a name the list"""
    found = chat.system.find().request("GET", "/profiles")
    names = {name: each["name"] for each in found["profiles"] for name in (each["name"], *each["aliases"])}
    if not argument:
        chosen = chat.options.profile or "general"
        lines = [
            f"{'•' if each['name'] == chosen else ' '} {each['name']}  {each['description']}"
            for each in found["profiles"]
        ]
        chat.say("\n".join([*lines, *found["problems"]]))
        return
    if argument not in names:
        raise BadCommand(f"there is no profile {argument}; {suggestion(argument, names)}")
    chat.options.profile = names[argument]
    chat.say(f"{names[argument]} answers from now on")


def _why(chat: Chat, argument: str) -> None:
    """what the time of the last answer went into"""
    chat.say("\n".join(waterfall(chat.system.find().trace(_last(chat)["query_id"]))))


def _export(chat: Chat, argument: str) -> None:
    """FILE: write this conversation as Markdown"""
    text = chat.system.find().export(chat.options.session_id)
    path = Path(argument or f"{chat.options.session_id[:8]}.md").expanduser()
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadCommand(f"{path}: {error.strerror}") from None
    chat.say(f"the conversation is in {path}")


def _think(chat: Chat, argument: str) -> None:
    """show, fold or hide: what the model thinks"""
    if argument not in ("show", "fold", "hide"):
        raise BadCommand("/think show, /think fold or /think hide")
    chat.options.think = argument  # type: ignore[assignment]


def _help(chat: Chat, argument: str) -> None:
    """this list"""
    chat.say("\n".join(f"/{name:9} {command.__doc__}" for name, command in COMMANDS.items()))


def _quit(chat: Chat, argument: str) -> None:
    """leave, as Ctrl-D does"""
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
        raise BadCommand("which one? /memory QUESTION lists the ids")
    return quote(chat.system.find().whole_engram_id(argument), safe="")


def _participants(chat: Chat) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = chat.system.find().request("GET", "/participants")["participants"]
    return found


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= PREVIEW else f"{line[: PREVIEW - 1]}…"

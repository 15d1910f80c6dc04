"""A whole conversation as a file: Markdown to read, JSON with everything."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from datetime import datetime
from typing import Any

from pydantic_core import to_json

Json = dict[str, Any]
Turns = AsyncGenerator[list[Json], None]
Chunks = AsyncGenerator[bytes, None]
NAME_CHARACTERS = 60


def file_name(title: str, ending: str) -> str:
    """A name that every file system takes, made of a title."""
    words = re.sub(r"[^A-Za-z0-9]+", "-", title).strip("-")[:NAME_CHARACTERS].strip("-")
    return f"{words or 'conversation'}.{ending}"


async def as_json(session: Json, turns: Turns) -> Chunks:
    """One object: the session as it is listed, and its `turns`."""
    yield b'{"session":%b,"turns":[' % to_json(session)
    separator = b""
    async for some in turns:
        for turn in some:
            yield separator + to_json(turn)
            separator = b",\n"
    yield b"]}\n"


async def as_markdown(session: Json, turns: Turns) -> Chunks:
    """Questions and answers, with the thinking folded, and the tools that were called."""
    yield f"# {_one_line(session['title']) or session['session_id']}\n".encode()
    async for some in turns:
        for turn in some:
            yield _turn(turn).encode()


def _turn(turn: Json) -> str:
    asked_at = datetime.fromtimestamp(turn["created_at"]).astimezone().isoformat(" ", "minutes")
    parts = [f"\n## {asked_at}\n", *_quoted(turn["query"])]
    parts += [f"> 📎 {file['name'] or file['id']}" for file in turn["attachments"]]
    if turn["thinking"]:
        parts += ["", "<details><summary>Thinking</summary>", "", turn["thinking"], "", "</details>"]
    parts += ["", *map(_call, turn["tool_calls"])] if turn["tool_calls"] else []
    parts += ["", turn["answer"] or ""]
    if turn["error"]:
        parts.append(f"*{turn['status']}: {turn['error']['message']}*")
    elif turn["status"] != "answered":
        parts.append(f"*{turn['status']}*")
    return "\n".join(parts) + "\n"


def _quoted(text: str) -> list[str]:
    return [f"> {line}".rstrip() for line in text.splitlines()]


def _call(call: Json) -> str:
    arguments = ", ".join(f"{name}={to_json(value).decode()}" for name, value in call["args"].items())
    sources = ", ".join(call.get("sources") or ())
    error = call.get("error")
    how = f" failed: {error['message']}" if error else f" → {sources}" if sources else ""
    return f"- `{call['tool']}({_one_line(arguments)})`{how}"


def _one_line(text: str) -> str:
    return " ".join(text.split())

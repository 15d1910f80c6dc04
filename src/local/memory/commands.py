"""`local2 memory …`: search, show, pin and delete the owner's memories."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any
from urllib.parse import quote, urlencode

import typer

from local.cli.client import SystemClient, running_system
from local.cli.main import (
    ApiOption,
    DataDir,
    JsonOption,
    date_and_time,
    repeated_lines,
    visible,
    write_found,
    write_lines,
)
from local.memory.file_commands import add_commands

Json = dict[str, Any]
Engram = Annotated[str, typer.Argument(metavar="ID", help="An engram; the beginning of its id will do.")]
Fact = Annotated[int, typer.Argument(metavar="NUMBER", min=1, help="An unconfirmed fact, as `facts` shows it.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=100, help="How many at most.")]

memory_app = typer.Typer(
    help="What is remembered: search, list, show, pin, unpin, delete, facts, confirm, drop, notes, restore, export,"
    " import."
)
add_commands(memory_app)


@memory_app.command()
def search(
    question: Annotated[list[str], typer.Argument(metavar="QUESTION", help="In words.")],
    limit: Limit = 10,
    as_json: JsonOption = False,
    api: ApiOption = None,
    data_dir: DataDir = None,
) -> None:
    """Search the memories for a question, the best first.

    Example: local2 memory search coffee
    """
    words = " ".join(question).strip()
    if not words:
        raise typer.BadParameter("is blank; expected a question", param_hint="QUESTION")
    query = urlencode({"query": words, "limit": limit})
    found = running_system(api, data_dir).request("GET", f"/memory?{query}")
    lines = map(_hit_line, found["hits"])
    write_found(found, lines, as_json=as_json, nothing="nothing relevant is remembered")
    if not as_json:
        for sentence in found["degraded"]:
            typer.echo(visible(f"note: {sentence}"), err=True)


@memory_app.command("list")
def list_engrams(
    limit: Limit = 20, as_json: JsonOption = False, api: ApiOption = None, data_dir: DataDir = None
) -> None:
    """Show the latest memories first; a * marks pinned ones.

    Example: local2 memory list -n 5
    """
    found = running_system(api, data_dir).request("GET", f"/memory?limit={limit}")
    lines = map(_engram_line, found["engrams"])
    write_found(found, lines, as_json=as_json, nothing="nothing is remembered yet")


@memory_app.command()
def show(engram: Engram, as_json: JsonOption = False, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Show a whole exchange, with the facts from it and its changes.

    Example: local2 memory show 1f6e
    """
    client = running_system(api, data_dir)
    found = client.request("GET", _path(client, engram))
    write_lines([json.dumps(found)] if as_json else _whole(found))


@memory_app.command()
def pin(engram: Engram, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Add your words in an exchange to every conversation.

    Example: local2 memory pin 1f6e
    """
    _change(running_system(api, data_dir), method="POST", engram=engram, what="pin", now="is pinned")


@memory_app.command()
def unpin(engram: Engram, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Undo that.

    Example: local2 memory unpin 1f6e
    """
    _change(running_system(api, data_dir), method="DELETE", engram=engram, what="pin", now="is not pinned any more")


@memory_app.command()
def delete(engram: Engram, as_json: JsonOption = False, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Delete an exchange permanently, also from its conversation and the record; name the engrams that may repeat it.

    Example: local2 memory delete 1f6e
    """
    client = running_system(api, data_dir)
    done = client.request("DELETE", _path(client, engram))
    said = [f"{done['engram_id']} is removed", *repeated_lines(done["repeated_in"])]
    write_lines([json.dumps(done)] if as_json else said)


@memory_app.command()
def facts(
    history: Annotated[bool, typer.Option("--history", help="Also those that hold no more.")] = False,
    as_json: JsonOption = False,
    api: ApiOption = None,
    data_dir: DataDir = None,
) -> None:
    """Show the facts about you, which of them are in every prompt, and which are unconfirmed.

    Example: local2 memory facts --history
    """
    found = running_system(api, data_dir).request("GET", f"/memory/facts{'?history=true' if history else ''}")
    lines = [_fact_line(fact) for fact in found["facts"]]
    lines += ["", "in every prompt", *(visible(f"  {line}") for line in found["told"])] if found["told"] else []
    if found.get("unconfirmed"):
        lines += ["", "unconfirmed, in no prompt unless about health: local2 memory confirm NUMBER, or drop NUMBER"]
        lines += [f"{fact['fact_id']:>5}  {_fact_line(fact | {'confirmed': True})}" for fact in found["unconfirmed"]]
    write_found(found, lines, as_json=as_json, nothing="no fact is known")


@memory_app.command()
def confirm(fact: Fact, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Have an unconfirmed fact count.

    Example: local2 memory confirm 12
    """
    done = running_system(api, data_dir).request("POST", f"/memory/facts/{fact}/confirm")["fact"]
    typer.echo(_one_line(f"{done['slot']}: {done['value']} is confirmed"))


@memory_app.command()
def drop(fact: Fact, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Remove an unconfirmed fact.

    Example: local2 memory drop 12
    """
    done = running_system(api, data_dir).request("DELETE", f"/memory/facts/{fact}")["fact"]
    typer.echo(_one_line(f"{done['slot']}: {done['value']} is removed"))


@memory_app.command()
def notes(as_json: JsonOption = False, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Show the assistant's current notes, the latest first.

    Example: local2 memory notes
    """
    found = running_system(api, data_dir).request("GET", "/memory/notes")
    write_found(found, map(_engram_line, found["notes"]), as_json=as_json, nothing="nothing is noted")


@memory_app.command()
def restore(engram: Engram, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Have a note hold again that was replaced or withdrawn.

    Example: local2 memory restore 1f6e
    """
    _change(running_system(api, data_dir), method="POST", engram=engram, what="restore", now="holds again")


def _engram_line(engram: Json) -> str:
    """Return an engram as a line: the beginning of its id, its time, its question."""
    mark = "*" if engram["pinned"] else " "
    said = f"note: {engram['answer']}" if engram.get("note_of") else engram["query"]
    return f"{mark} {engram['engram_id'][:8]}  {date_and_time(engram['asked_at'])}  {_one_line(said)}"


def _hit_line(hit: Json) -> str:
    return f"{_engram_line(hit)}  ({hit['relevance']:.2f}{', outdated' if hit['outdated'] else ''})"


def _fact_line(fact: Json) -> str:
    doubt = "" if fact["certain"] else " (not sure)"
    doubt += "" if fact.get("confirmed", True) else " (unconfirmed)"
    doubt += " (may have changed since)" if fact.get("questioned") else ""
    said = _one_line(f"{fact['slot']}: {fact['value']}{doubt}")
    line = f"{fact['engram_id'][:8]}  {date_and_time(fact['stated_at'])}  {said}"
    ended = fact.get("superseded_at")
    return f"{line}  (until {date_and_time(ended)})" if ended else line


def _whole(found: Json) -> Iterator[str]:
    engram = found["engram"]
    yield f"engram   {engram['engram_id']}{'  pinned' if engram['pinned'] else ''}"
    yield f"asked    {date_and_time(engram['asked_at'])}, session {visible(engram['session_id'] or '-')}"
    yield f"from     {engram['origin']}"
    yield from ("", "question", *_indented(engram["query"]), "answer", *_indented(engram["answer"]))
    for name in ("facts", "changes"):
        if found[name]:
            yield from ("", name, *(visible(f"  {json.dumps(each, ensure_ascii=False)}") for each in found[name]))


def _indented(text: str) -> list[str]:
    return [visible(f"  {line}") for line in text.split("\n")]


def _one_line(text: str) -> str:
    return visible(" ".join(text.split()))


def _change(client: SystemClient, *, method: str, engram: str, what: str, now: str) -> None:
    """Change an engram, and print its state, `now`."""
    done = client.request(method, f"{_path(client, engram)}/{what}")
    typer.echo(f"{done['engram_id']} {now}")


def _path(client: SystemClient, engram: str) -> str:
    return f"/memory/{quote(client.whole_engram_id(engram), safe='')}"

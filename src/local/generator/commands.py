"""`local2 sessions …`: the conversations: list, search, show, rename, pin, sort, archive, delete, export, import,
branch."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, urlencode

import typer

from local.cli.client import SystemClient, running_system
from local.cli.main import (
    STANDARD_OUTPUT,
    ApiOption,
    DataDir,
    JsonOption,
    UserOption,
    date_and_time,
    of_user,
    repeated_lines,
    visible,
    write_found,
    write_lines,
)
from local.core.errors import NoAnswer

Json = dict[str, Any]
FORMATS = ("markdown", "json")
IMPORT_PATH = "/sessions/import"
PREVIEWED = 10
Session = Annotated[str, typer.Argument(metavar="ID", help="A conversation; the beginning of its id will do.")]
Sessions = Annotated[
    list[str], typer.Argument(metavar="ID", help="Conversations; the beginnings of their ids will do.")
]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, help="How many at most.")]

session_app = typer.Typer(
    help="The conversations: list, search, show, rename, pin, move, tag, archive, delete, export, import, branch.",
)


@session_app.command("list")
def list_sessions(
    limit: Limit = 20,
    folder: Annotated[str | None, typer.Option(help="Only those in this folder.")] = None,
    tag: Annotated[str | None, typer.Option(help="Only those with this tag.")] = None,
    archived: Annotated[bool, typer.Option("--archived", help="Only those that are archived.")] = False,
    as_json: JsonOption = False,
    api: ApiOption = None,
    data_dir: DataDir = None,
) -> None:
    """Show the pinned conversations, with a *, and then the latest first.

    Example: local2 sessions list -n 5
    """
    wanted = {"limit": limit, "folder": folder, "tag": tag, "archived": "true" if archived else None}
    query = urlencode({name: value for name, value in wanted.items() if value is not None})
    found = running_system(api, data_dir).request("GET", f"/sessions?{query}")
    is_chosen = folder is not None or tag is not None or archived
    nothing = "there is no such conversation" if is_chosen else "there is no conversation yet"
    write_found(found, _lines(found["sessions"]), as_json=as_json, nothing=nothing)


@session_app.command()
def search(
    words: Annotated[list[str], typer.Argument(metavar="WORDS", help="All of them, in whatever case.")],
    limit: Limit = 20,
    as_json: JsonOption = False,
    api: ApiOption = None,
    data_dir: DataDir = None,
) -> None:
    """Show the conversations that contain words, in their titles or in one of their turns.

    Example: local2 sessions search coffee black
    """
    query = urlencode({"query": " ".join(words), "limit": limit, "archived": "any"})
    found = running_system(api, data_dir).request("GET", f"/sessions?{query}")
    write_found(found, _lines(found["sessions"]), as_json=as_json, nothing="no conversation has these words")


@session_app.command()
def show(session: Session, as_json: JsonOption = False, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Show the questions and answers of a conversation.

    Example: local2 sessions show 1f6e
    """
    client = running_system(api, data_dir)
    found = client.export(client.whole_id(session), "json" if as_json else "markdown")
    write_lines([json.dumps(json.loads(found))] if as_json else map(visible, found.rstrip("\n").split("\n")))


@session_app.command()
def rename(
    session: Session,
    title: Annotated[list[str] | None, typer.Argument(metavar="TITLE", help="Without one: automatic.")] = None,
    api: ApiOption = None,
    data_dir: DataDir = None,
) -> None:
    """Give a conversation a title.

    Example: local2 sessions rename 1f6e Holidays in spring
    """
    _label(running_system(api, data_dir), session, {"title": " ".join(title or []) or None})


@session_app.command()
def pin(session: Session, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Pin a conversation to the top of the list.

    Example: local2 sessions pin 1f6e
    """
    _label(running_system(api, data_dir), session, {"pinned": True})


@session_app.command()
def unpin(session: Session, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Undo that.

    Example: local2 sessions unpin 1f6e
    """
    _label(running_system(api, data_dir), session, {"pinned": False})


@session_app.command()
def move(
    sessions: Sessions,
    folder: Annotated[str | None, typer.Option(help="The folder; without one: out of its folder.")] = None,
    api: ApiOption = None,
    data_dir: DataDir = None,
) -> None:
    """Put conversations into a folder, which exists as long as a conversation is in it.

    Example: local2 sessions move 1f6e 77ab --folder Travel
    """
    _change_many(running_system(api, data_dir), sessions, {"folder": folder})


@session_app.command()
def tag(
    sessions: Sessions,
    add: Annotated[list[str] | None, typer.Option(metavar="TAG", help="A tag to add; repeatable.")] = None,
    remove: Annotated[list[str] | None, typer.Option(metavar="TAG", help="A tag to take away; repeatable.")] = None,
    api: ApiOption = None,
    data_dir: DataDir = None,
) -> None:
    """Add tags to conversations, or take them away.

    Example: local2 sessions tag 1f6e --add work --remove todo
    """
    if not add and not remove:
        raise typer.BadParameter("no tag is named; expected --add TAG or --remove TAG")
    change = {"add_tags": add or [], "remove_tags": remove or []}
    _change_many(running_system(api, data_dir), sessions, change)


@session_app.command()
def archive(sessions: Sessions, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Take conversations out of the list without deleting them; searches still find them.

    Example: local2 sessions archive 1f6e 77ab
    """
    _change_many(running_system(api, data_dir), sessions, {"archived": True})


@session_app.command()
def unarchive(sessions: Sessions, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Put archived conversations back into the list.

    Example: local2 sessions unarchive 1f6e
    """
    _change_many(running_system(api, data_dir), sessions, {"archived": False})


@session_app.command()
def delete(
    sessions: Sessions,
    yes: Annotated[bool, typer.Option("--yes", help="Delete without asking for confirmation.")] = False,
    as_json: JsonOption = False,
    api: ApiOption = None,
    data_dir: DataDir = None,
) -> None:
    """Delete conversations with all their versions, also from the record and the memory; list the copies that remain.
    Asks first where an id is shortened.

    Example: local2 sessions delete 1f6e
    """
    client = running_system(api, data_dir)
    paths = {session: _path(client, session) for session in sessions}
    shortened = [path for session, path in paths.items() if not path.endswith(f"/{session}")]
    for told in (client.request("GET", path) for path in shortened if not yes):
        typer.echo(visible(f"{told['session_id']}  {told['title'] or ''}".rstrip()), err=True)
    if shortened and not yes and not typer.confirm("Delete this?", err=True):
        raise typer.Exit(1)
    for path in paths.values():
        _print_deleted(client.request("DELETE", f"{path}?versions=true"), as_json=as_json)


def _print_deleted(done: Json, *, as_json: bool) -> None:
    said = [
        f"{done['session_id']} is removed, with {done['deleted_turns']} turns",
        *repeated_lines(done["repeated_in"]),
    ]
    said += [f"{len(done['copied_to'])} branches keep copies:", *done["copied_to"]] if done["copied_to"] else []
    write_lines([json.dumps(done)] if as_json else map(visible, said))


@session_app.command()
def export(
    session: Annotated[str | None, typer.Argument(metavar="[ID]", help="The beginning of an id will do.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All, as JSON that `sessions import` reads.")] = False,
    user: UserOption = None,
    form: Annotated[str, typer.Option("--format", help="markdown or json.")] = "markdown",
    output: Annotated[Path | None, typer.Option(metavar="FILE", help="Instead of the standard output.")] = None,
    api: ApiOption = None,
    data_dir: DataDir = None,
) -> None:
    """Export a whole conversation, or all of them.

    Example: local2 sessions export 1f6e --output holidays.md
    """
    if everything == (session is not None) or (user and not everything):
        raise typer.BadParameter("expected the ID of a conversation, or --all", param_hint="ID")
    if form not in FORMATS:
        raise typer.BadParameter(f"{form!r} is not one of {', '.join(FORMATS)}", param_hint="--format")
    client = running_system(api, data_dir)
    if session is None:
        write_lines(_all_as_json(client, user), output or STANDARD_OUTPUT)
    else:
        write_lines([client.export(client.whole_id(session), form).removesuffix("\n")], output or STANDARD_OUTPUT)


def _all_as_json(client: SystemClient, user: str | None) -> Iterator[str]:
    path, cursor = of_user("/sessions?archived=any", user), ""
    mark = "["
    while cursor is not None:
        page = client.request("GET", f"{path}&{urlencode({'cursor': cursor})}")
        for row in page["sessions"]:
            yield mark + client.export(row["session_id"], "json").removesuffix("\n")
            mark = ","
        cursor = page["cursor"]
    yield "]" if mark == "," else "[]"


@session_app.command("import")
def import_file(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="An export of ChatGPT (JSON or ZIP), Open WebUI, LibreChat or LoCAL2 (JSON)."
        ),
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Import without asking for confirmation.")] = False,
    user: UserOption = None,
    as_json: JsonOption = False,
    api: ApiOption = None,
    data_dir: DataDir = None,
) -> None:
    """Import the conversations that another program has exported, after it has shown how many there are.

    Example: local2 sessions import conversations.json
    """
    try:
        content = file.read_bytes()
    except OSError as error:
        raise typer.BadParameter(f"{file} cannot be read: {error.strerror}", param_hint="FILE") from None
    client = running_system(api, data_dir)
    found = client.request("POST", of_user(f"{IMPORT_PATH}?preview=true", user), content)
    if not as_json:
        write_lines(map(visible, _found_lines(found)))
    if found["new"] and (yes or typer.confirm("Import them?", err=as_json)):
        found = client.request("POST", of_user(IMPORT_PATH, user), content)
        if not as_json:
            write_lines(
                map(visible, [*_left_out_lines(found), f"imported: {_counted(found['imported'], 'conversation')}"])
            )
    if as_json:
        write_lines([json.dumps(found)])


def _found_lines(found: Json) -> list[str]:
    """What there is in a file."""
    sources = ", ".join(found["sources"]) or "no program"
    there = f"; {found['known']} of {found['found']} are here already" if found["known"] else ""
    counted = f"{_counted(found['new'], 'conversation')} from {sources} with {_counted(found['turns'], 'question')}"
    lines = [f"{counted}{there}"]
    shown = found["conversations"][:PREVIEWED]
    lines += [f"  {' '.join(one['title'].split()) or 'untitled'} ({one['turns']})" for one in shown]
    lines += [f"  … and {found['new'] - len(shown)} more"] if found["new"] > len(shown) else []
    cut = found["cut"]
    lines += [f"  the first {cut} questions of very long conversations are left out"] if cut else []
    return [*lines, *_left_out_lines(found)]


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _left_out_lines(found: Json) -> list[str]:
    return [f"  left out: {one['title'] or 'a part of the file'}: {one['reason']}" for one in found["left_out"]]


@session_app.command()
def branch(
    session: Session,
    before: Annotated[str, typer.Option(metavar="QUERY", help="The query from which on it is to be another one.")] = "",
    through: Annotated[str, typer.Option(metavar="QUERY", help="Instead: the last query that it is to have.")] = "",
    as_json: JsonOption = False,
    api: ApiOption = None,
    data_dir: DataDir = None,
) -> None:
    """Begin a conversation with the turns before a query of another one, or up to one, and print its id.

    Example: local2 ask -s "$(local2 sessions branch 1f6e --before q7)" "And in autumn?"
    """
    client = running_system(api, data_dir)
    if bool(before) == bool(through):
        raise typer.BadParameter("expected one of --before and --through", param_hint="--before")
    place = {"before": before} if before else {"through": through}
    made = client.request("POST", f"{_path(client, session)}/branch", place)
    write_lines([json.dumps(made) if as_json else made["session_id"]])


def _change_many(client: SystemClient, sessions: Sequence[str], change: Json) -> None:
    ids = [client.whole_id(session) for session in sessions]
    results = client.request("POST", "/sessions/change", {"session_ids": ids, **change})["results"]
    write_lines(_lines([each["session"] for each in results if not each["error"]]))
    failed = [f"{each['session_id']}: {each['error']['message']}" for each in results if each["error"]]
    if failed:
        raise NoAnswer("failed", "; ".join(failed), 409)


def _lines(sessions: Sequence[Json]) -> Iterator[str]:
    """Return a line for each session: the beginning of its id, its latest turn, the number of turns, its title; and
    below it what a search has found.
    """
    for row in sessions:
        mark, waits = "*" if row["pinned"] else " ", f"  ({row['open']} open)" if row.get("open") else ""
        head = f"{mark} {row['session_id'][:12]:<12}  {date_and_time(row['updated_at'])}  {row['turns']:>4}"
        where = f"  [{row['folder']}]" if row.get("folder") else ""
        tags = "".join(f"  #{tag}" for tag in row.get("tags", ()))
        origin = f"  (from {row['imported_from']})" if row.get("imported_from") else ""
        yield visible(f"{head}  {' '.join(row['title'].split())}{where}{tags}{origin}{waits}")
        if match := row.get("match"):
            yield visible(f"    {match['query_id']}: {' '.join(match['excerpt'].split())}")


def _label(client: SystemClient, session: str, labels: Json) -> None:
    row = client.request("PATCH", _path(client, session), labels)
    write_lines(_lines([row]))


def _path(client: SystemClient, session: str) -> str:
    return f"/sessions/{quote(client.whole_id(session), safe='')}"

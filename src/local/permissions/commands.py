"""`local2 approvals …`: pending approvals, and the grants of conversations."""

from __future__ import annotations

import sys
from typing import Annotated, Any
from urllib.parse import quote

import typer

from local.bus.vocabulary import CLARIFICATION, PROPOSE_PLAN
from local.cli.approvals import call_told
from local.cli.client import running_system
from local.cli.main import ApiOption, DataDir, JsonOption, date_and_time, visible, write_found
from local.cli.renderer import call_text
from local.core.errors import BadQuestion

Json = dict[str, Any]
Call = Annotated[str, typer.Argument(metavar="CALL", help="A call, as `local2 approvals list` has it.")]

approvals_app = typer.Typer(help="Approvals: list what waits, show one whole, allow, deny, forget.")


@approvals_app.command("list")
def list_approvals(as_json: JsonOption = False, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Show the pending approvals, and below them the grants of conversations.

    Example: local2 approvals list
    """
    with running_system(api, data_dir) as client:
        waiting = client.request("GET", "/approvals")
        remembered = client.request("GET", "/approvals/remembered")
    lines = [*map(_waiting_line, waiting["approvals"]), *map(_remembered_line, remembered["remembered"])]
    write_found({**waiting, **remembered}, lines, as_json=as_json, nothing="nothing waits, and nothing is remembered")


@approvals_app.command()
def show(call: Call, as_json: JsonOption = False, api: ApiOption = None, data_dir: DataDir = None) -> None:
    """Show all that a waiting call would be made with, each argument whole. The list shortens it.

    Example: local2 approvals show 4f1c…:0:0
    """
    with running_system(api, data_dir) as client:
        found = client.request("GET", "/approvals")["approvals"]
    asked = next((each for each in found if each["call_id"] == call), None)
    if asked is None:
        raise BadQuestion(f"nothing waits under {call}; `local2 approvals list` shows what does")
    write_found(asked, call_told(asked, sys.maxsize).splitlines(), as_json=as_json, nothing="")


@approvals_app.command()
def allow(
    call: Call,
    session: Annotated[bool, typer.Option("--session", help="In this whole conversation.")] = False,
    answer: Annotated[str | None, typer.Option(help="To a question of the model.")] = None,
    edits: Annotated[bool, typer.Option("--edits", help="Of a plan: files are changed without asking again.")] = False,
    api: ApiOption = None,
    data_dir: DataDir = None,
) -> None:
    """Have a call made, or answer the model.

    Example: local2 approvals allow 4f1c…:0:0 --session

    Example: local2 approvals allow 4f1c…:1:0 --answer blue
    """
    told = ({} if answer is None else {"answer": answer}) | ({"mode": "acceptEdits"} if edits else {})
    _decide(call, {"decision": "allow_session" if session else "allow", **told}, api, data_dir)


@approvals_app.command()
def deny(
    call: Call,
    answer: Annotated[str | None, typer.Option(help="The change that you want.")] = None,
    api: ApiOption = None,
    data_dir: DataDir = None,
) -> None:
    """Have a call not made.

    Example: local2 approvals deny 4f1c…:0:0

    Example: local2 approvals deny 4f1c…:0:0 --answer "not in that folder"
    """
    _decide(call, {"decision": "deny", **({} if answer is None else {"answer": answer})}, api, data_dir)


@approvals_app.command()
def forget(
    grant: Annotated[int, typer.Argument(metavar="NUMBER", help="As `local2 approvals list` has it.")],
    api: ApiOption = None,
    data_dir: DataDir = None,
) -> None:
    """Revoke the grant of a conversation.

    Example: local2 approvals forget 3
    """
    with running_system(api, data_dir) as client:
        client.request("DELETE", f"/approvals/remembered/{grant}")
    typer.echo(f"{grant} is forgotten: such a call asks again")


def _decide(call: str, body: Json, api: str | None, data_dir: Any) -> None:
    with running_system(api, data_dir) as client:
        client.request("POST", f"/approvals/{quote(call, safe='')}", {**body, "by": "terminal"})
    typer.echo(f"{call}: {body['decision']}")


def _waiting_line(asked: Json) -> str:
    until = f"until {date_and_time(asked['expires_at'])}"
    if asked["tool"] == CLARIFICATION:
        told = " | ".join((str(asked["args"].get("question", "")), *map(str, asked["args"].get("options") or ())))
        return f"{asked['call_id']}  asks you: {visible(told)}  {until}"
    if asked["tool"] == PROPOSE_PLAN:
        told = " | ".join((str(asked["args"].get("title", "")), *map(str, asked["args"].get("steps") or ())))
        return f"{asked['call_id']}  a plan: {visible(told)}  {until}"
    why = visible(asked.get("why", ""))
    whose = f"  agent {visible(asked['agent'])} of {asked['root_query_id'][:8]}" if asked.get("agent") else ""
    whose = f"  of a program that calls itself {visible(asked['client'])}" if asked.get("client") else whose
    return f"{asked['call_id']}  {asked['level']}  {call_text(asked)}  {until}{whose}  {why}"


def _remembered_line(grant: Json) -> str:
    return f"{grant['grant_id']}  in {grant['session_id'][:8]}  {call_text(grant)}"

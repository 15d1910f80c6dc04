"""`local2 tap`: everything that is said, as it is said."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from local.apps.command_line import BusOption, DataDir, JsonOption, Many
from local.apps.tap.connection import listen, print_until_stopped
from local.apps.tap.human_view import HumanView
from local.apps.tap.printer import Printer
from local.apps.tap.selection import Selection
from local.apps.tap.view import FieldView, JsonView, View
from local.apps.terminal import terminal_width
from local.bus.blobs import BlobStore
from local.bus.bus import Bus
from local.environment import data_dir as find_data_dir
from local.protocol.envelope import Envelope


def echo(
    subject: Annotated[
        Many, typer.Option(help="A subject, a family ('tool.') or a pattern ('tool.*'). '*' is all, upkeep included.")
    ] = None,
    session: Annotated[str | None, typer.Option(metavar="ID", help="Only this session; its beginning will do.")] = None,
    query: Annotated[str | None, typer.Option(metavar="ID", help="Only what this query caused; likewise.")] = None,
    field: Annotated[Many, typer.Option(metavar="PATH", help="Only this field, such as payload.answer.")] = None,
    as_json: JsonOption = False,
    count: Annotated[int | None, typer.Option(min=1, help="End after so many lines.")] = None,
    no_payload: Annotated[bool, typer.Option("--no-payload", help="Headers only.")] = False,
    no_fold: Annotated[bool, typer.Option("--no-fold", help="A line for each token, not for each sentence.")] = False,
    data_dir: DataDir = None,
    bus: BusOption = None,
) -> None:
    """Show every message, one on a line."""
    selection = Selection(tuple(subject or ()), session, query)
    blobs = BlobStore(find_data_dir(data_dir) / "blobs")
    view: View[Envelope]
    if field:
        view = FieldView(field, as_json=as_json, blobs=blobs)
    elif as_json:
        view = JsonView(blobs=blobs, show_payload=not no_payload)
    else:
        view = HumanView(width=terminal_width, show_payload=not no_payload, fold=not no_fold)
    print_until_stopped(
        view,
        lambda bus, printer, stop: watch(bus, selection, printer, stop),
        data_dir=data_dir,
        addresses=bus,
        count=count,
    )


async def watch(bus: Bus, selection: Selection, printer: Printer[Envelope], stop: asyncio.Event) -> None:
    """Hand what is selected to a printer until `stop` is set."""

    def receive(envelope: Envelope) -> None:
        printer.offer(envelope, len(envelope.payload))

    await listen(bus, selection, receive, printer, stop)

"""Run the stand-in by hand: `python -m local.stand_in --port 11434`."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from pathlib import Path
from typing import Annotated

import typer

from local.core.errors import ConfigError
from local.stand_in.server import StandInSettings, serve

_USAGE_ERROR = 2

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


async def _run(settings: StandInSettings, sock: socket.socket) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await serve(settings, sock, stop)


@app.command()
def stand_in(
    host: str = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes a free one.")] = 11434,
    latency: Annotated[float, typer.Option(help="Seconds before the first token.")] = 0.0,
    chunk_delay: Annotated[float, typer.Option(help="Seconds between two chunks.")] = 0.0,
    served_at_once: Annotated[int, typer.Option(help="Answers side by side; 0: no limit.")] = 0,
    script: Annotated[list[Path] | None, typer.Option(help="A story to play (may be repeated).")] = None,
) -> None:
    """Run LoCAL2's stand-in model server until Ctrl-C or SIGTERM."""
    settings = StandInSettings(
        scripts=tuple(script or ()),
        latency_seconds=latency,
        chunk_delay_seconds=chunk_delay,
        served_at_once=served_at_once,
    )
    try:
        with socket.create_server((host, port)) as sock:
            sys.stderr.write("stand-in model on http://{}:{}\n".format(*sock.getsockname()[:2]))
            asyncio.run(_run(settings, sock))
    except (OSError, OverflowError) as error:
        raise _failed(f"cannot listen on {host}:{port}: {error}") from None
    except ConfigError as error:
        raise _failed(str(error)) from None


def _failed(sentence: str) -> typer.Exit:
    """Print why the server cannot begin; the exit status is 2."""
    sys.stderr.write(f"{sentence}\n")
    return typer.Exit(_USAGE_ERROR)


if __name__ == "__main__":
    app(prog_name="python -m local.stand_in")

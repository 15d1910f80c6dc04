"""Run the stand-in by hand: `python -m local.models.stand_in --port 11434`."""

from __future__ import annotations

import argparse
import asyncio
import signal
import socket
import sys
from pathlib import Path

from local.errors import ConfigError
from local.models.stand_in.server import serve
from local.models.stand_in.stand_in import StandInSettings

_USAGE_ERROR = 2


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m local.models.stand_in", description="LoCAL2's stand-in model server")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=11434, help="0 takes a free one")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before the first token")
    parser.add_argument("--chunk-delay", type=float, default=0.0, help="seconds between two chunks")
    parser.add_argument("--served-at-once", type=int, default=0, help="answers side by side; 0: no limit")
    parser.add_argument("--script", type=Path, action="append", default=[], help="a story to play (may be repeated)")
    return parser.parse_args()


async def _run(settings: StandInSettings, sock: socket.socket) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await serve(settings, sock, stop)


def main() -> int:
    """Serve until Ctrl-C or SIGTERM; the exit status is 2, with one line on stderr, if that cannot begin."""
    given = _arguments()
    settings = StandInSettings(
        scripts=tuple(given.script),
        latency_seconds=given.latency,
        chunk_delay_seconds=given.chunk_delay,
        served_at_once=given.served_at_once,
    )
    try:
        sock = socket.create_server((given.host, given.port))
        host, port = sock.getsockname()[:2]
        sys.stderr.write(f"stand-in model on http://{host}:{port}\n")
        asyncio.run(_run(settings, sock))
    except (OSError, OverflowError) as error:
        sys.stderr.write(f"cannot listen on {given.host}:{given.port}: {error}\n")
        return _USAGE_ERROR
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return _USAGE_ERROR
    return 0


if __name__ == "__main__":
    sys.exit(main())

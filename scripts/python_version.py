"""Refuses a system that cannot run LoCAL2, in one clear line. Every Python since 2.7 can read this file."""

import os
import sys

OLDEST = (3, 11)


def check():  # type: () -> None
    """End with status 2 unless this is Python 3.11 or newer on Linux or macOS."""
    if sys.version_info < OLDEST:
        version = sys.version.split()[0]
        _refuse("LoCAL2 needs Python 3.11 or newer, and this is " + version + "; try: python3.11 " + sys.argv[0])
    if os.name == "nt":
        _refuse("LoCAL2 runs on Linux and macOS; on Windows start it inside WSL")


def _refuse(line):  # type: (str) -> None
    sys.stderr.write(line + "\n")
    sys.exit(2)

"""The process that reads one PDF file. It is run by its path, imports nothing of LoCAL2, and is killed when its time is
over: a small file can keep a parser busy for hours.

Its input is a line of JSON with the limits, then the file; its output is JSON with `pages` and `note`, or an `error`.
"""

from __future__ import annotations

import io
import json
import logging
import resource
import sys
from contextlib import suppress
from typing import Any

MEMORY_BYTES = 1024**3


def read(data: bytes, max_pages: int, max_characters: int) -> dict[str, Any]:
    """Return the texts of the first pages, within the limits, and a note on what was left out; or why there
    are none.
    """
    import pypdf

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it complains about files that it can read
    try:
        reader = pypdf.PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            return {"error": "is protected by a password; save a copy without one"}
        total, texts, length = len(reader.pages), list[str](), 0
        for number in range(min(total, max_pages)):
            if length > max_characters:
                break
            texts.append(reader.pages[number].extract_text().strip())
            length += len(texts[-1])
    except Exception as error:  # noqa: BLE001 - a damaged file can trip any part of the parser
        return {"error": f"is not a readable PDF ({type(error).__name__}: {error})"}
    return {"pages": texts, "note": "" if len(texts) == total else f"its first {len(texts)} of {total} pages"}


def main() -> None:
    """Read the file on standard input."""
    header, _, data = sys.stdin.buffer.read().partition(b"\n")
    limits = json.loads(header)
    seconds = int(limits.pop("seconds")) + 1  # of processor time: the parent may have died
    for kind, value in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_DATA, MEMORY_BYTES)):
        with suppress(OSError, ValueError):
            resource.setrlimit(kind, (value, value))
    sys.stdout.buffer.write(json.dumps(read(data, **limits)).encode())


if __name__ == "__main__":
    main()

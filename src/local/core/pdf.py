"""The text of a PDF file, page by page, read by the package pypdf in a separate process."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from local.core.errors import AttachmentRefused

WORKER = (sys.executable, "-I", str(Path(__file__).with_name("pdf_worker.py")))


def pdf_pages(name: str, data: bytes, max_pages: int, max_characters: int, seconds: float) -> tuple[list[str], str]:
    """Return the texts of the first pages, within the limits, and a note on what was left out, if anything. Blocks.

    Raises `AttachmentRefused`: unsupported_media_type without the package pypdf, invalid for a file that it cannot read
    within so many seconds.
    """
    if not _is_installed():
        reason = "PDF files are read with the package pypdf, which is not installed; attach the text instead"
        raise AttachmentRefused(name, reason, kind="unsupported_media_type")
    header = json.dumps({"max_pages": max_pages, "max_characters": max_characters, "seconds": seconds}).encode()
    try:
        done = subprocess.run(
            WORKER, input=b"%s\n%s" % (header, data), capture_output=True, timeout=seconds, check=False,
            cwd="/", env={"LANG": "C.UTF-8"},
        )  # fmt: skip
        told = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        raise too_slow(name, seconds) from None
    except OSError as error:
        raise AttachmentRefused(name, f"could not be read: {error}", kind="invalid") from None
    except ValueError:
        reason = "takes too much memory or time to be read; attach only the relevant part"
        raise AttachmentRefused(name, reason, kind="invalid") from None
    if "error" in told:
        raise AttachmentRefused(name, told["error"][:300], kind="invalid")
    return told["pages"], told["note"]


def too_slow(name: str, seconds: float) -> AttachmentRefused:
    """The error for a file that takes too long to read."""
    reason = f"could not be read within {seconds:g} s; attach only the relevant part"
    return AttachmentRefused(name, reason, kind="invalid")


def _is_installed() -> bool:
    try:
        return find_spec("pypdf") is not None
    except ValueError:  # removed from this process meanwhile
        return False

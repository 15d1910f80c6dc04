"""A text for the model, and where it stands."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from local.trust.workspace_instructions import MOST_BYTES


class SourcedText(NamedTuple):
    """A text of the owner's, and where it stands."""

    origin: str
    text: str


def read_text(path: Path) -> tuple[str, str]:
    """A file's text, without space around it, empty where there is none; and why it cannot be read, if so."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            return "", f"{path} has more than {MOST_BYTES} bytes; it is left out"
        return content.decode("utf-8-sig").strip(), ""
    except FileNotFoundError:
        return "", ""
    except OSError as error:
        return "", f"{path} cannot be read: {error.strerror}"
    except UnicodeDecodeError:
        return "", f"{path} is no text in UTF-8; save it in that encoding"

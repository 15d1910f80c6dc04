"""The owner's token: who shows it over HTTP is the owner of the system, wherever they are."""

from __future__ import annotations

import secrets
from pathlib import Path

from local.environment import environment
from local.private_file import write_private

FILE_NAME = "api_token"
TOKEN_PREFIX = "local2-"  # of every token that we make, so that one which is not known any more is told from any key


def new_token() -> str:
    """A fresh one, which nobody guesses."""
    return TOKEN_PREFIX + secrets.token_urlsafe(32)


def owner_token(data_dir: Path) -> str | None:
    """LOCAL2_API_TOKEN, else what stands in `api_token`; None where neither is there, or the file is not ours."""
    if given := environment().api_token:
        return given
    try:
        return (data_dir / FILE_NAME).read_text(encoding="utf-8").strip() or None
    except (OSError, ValueError):
        return None


def make_owner_token(data_dir: Path) -> str:
    """The owner's token; made, for the eyes of this Unix user alone, if there is none. Raises `OSError`."""
    path = data_dir / FILE_NAME
    if token := owner_token(data_dir):
        if path.exists():
            path.chmod(0o600)
        return token
    write_private(path, f"{new_token()}\n")
    return owner_token(data_dir) or ""

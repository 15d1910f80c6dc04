"""The leave to make one call, as a tool's process can check it: what it is for, until when, and who says so."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from local.protocol.message import Data


def arguments_digest(args: Mapping[str, Any]) -> str:
    """SHA-256 of a call's arguments as canonical JSON. Raises `ValueError` for what JSON cannot say."""
    try:
        text = json.dumps(args, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    except (TypeError, RecursionError) as error:
        raise ValueError(f"arguments that JSON cannot say: {error}") from None
    return hashlib.sha256(text.encode()).hexdigest()


class Grant(Data):
    """For one call of one respondent, with these arguments and no others, until `expires_at` in seconds since 1970.
    `signature` is Ed25519, in hexadecimal digits, over the `statement`, by the key of that id."""

    call_id: str
    respondent_id: str
    tool: str
    args_sha256: str
    expires_at: float
    key_id: str
    signature: str = ""

    def statement(self) -> bytes:
        """What is signed: everything but the signature."""
        return json.dumps(["local2 grant 1", *self.model_dump(exclude={"signature"}).values()]).encode()

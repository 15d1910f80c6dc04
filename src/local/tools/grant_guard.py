"""Lets a tool's process make the calls that were granted, and no others."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from local.errors import ToolError
from local.protocol.grant import arguments_digest
from local.protocol.messages import ToolRequest
from local.services.signing import FOLDER, is_signed, key_id_of, read_public

NOT_GRANTED = "not_granted"


class GrantGuard:
    """Holds the gatekeeper's public key, read from the data directory when it is first needed, and again when a grant
    names another one. `clock` gives seconds since 1970."""

    def __init__(self, data_dir: Path, clock: Callable[[], float] = time.time) -> None:
        self._folder, self._clock = data_dir / FOLDER, clock
        self._public: bytes | None = None

    def require(self, request: ToolRequest) -> None:
        """Raises `ToolError` (not_granted) for a call without a grant for it."""
        if why := self._fault(request):
            raise ToolError(f"{request.tool} was not run: {why}", kind=NOT_GRANTED)

    def _fault(self, request: ToolRequest) -> str:
        grant = request.grant
        if grant is None:
            return "nobody has given leave for this call"
        if self._public is None or key_id_of(self._public) != grant.key_id:
            self._public = read_public(self._folder)
        if self._public is None or key_id_of(self._public) != grant.key_id:
            return "its leave is signed with a key that is not the gatekeeper's"
        if not is_signed(grant.statement(), grant.signature, self._public):
            return "the signature of its leave is wrong"
        try:
            digest = arguments_digest(request.args)
        except ValueError as error:
            return str(error)
        asked = (request.call_id, request.respondent_id, request.tool, digest)
        if asked != (grant.call_id, grant.respondent_id, grant.tool, grant.args_sha256):
            return "its leave is for another call"
        if self._clock() > grant.expires_at:
            return "its leave has run out"
        return ""

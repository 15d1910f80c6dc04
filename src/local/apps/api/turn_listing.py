"""The turns of a session as the API shows them: in pages, each with its files and with what was said of its answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any, Literal

from local.apps.api.context import api
from local.errors import AttachmentMissing

Json = dict[str, Any]
AT_ONCE = 100  # turns, as many as their scores can be asked for


class TurnListing:
    """Reads them from the generator, in as many pieces as it takes. Raises as `LoCALSession.look_up`; of a user
    `of_user` other sessions than that one's are not found."""

    async def before(self, session_id: str, query_id: str, limit: int, of_user: str | None) -> Json:
        """The `limit` turns before a query, or the last ones; the oldest first."""
        page = await self._piece(session_id, of_user, "before", limit, at=query_id)
        turns = page["turns"][::-1]
        newer = turns[-1]["query_id"] if turns and query_id else None
        return await self._page(page, turns, turns[0]["query_id"] if page["more"] else None, newer)

    async def after(self, session_id: str, query_id: str, limit: int, of_user: str | None) -> Json:
        """The `limit` turns after a query, the oldest first."""
        page = await self._piece(session_id, of_user, "after", limit, at=query_id)
        turns = page["turns"]
        older = turns[0]["query_id"] if turns else None
        return await self._page(page, turns, older, turns[-1]["query_id"] if page["more"] else None)

    async def around(self, session_id: str, query_id: str, limit: int, of_user: str | None) -> Json:
        """A query's turn with about as many turns before it as after it."""
        there = await self._piece(session_id, of_user, "at", 1, at=query_id)
        older = await self._piece(session_id, of_user, "before", max(1, (limit - 1) // 2), at=query_id)
        left = max(1, limit - 1 - len(older["turns"]))
        newer = await self._piece(session_id, of_user, "after", left, at=query_id)
        turns = [*older["turns"][::-1], *there["turns"], *newer["turns"]]
        first, last = turns[0]["query_id"], turns[-1]["query_id"]
        return await self._page(there, turns, first if older["more"] else None, last if newer["more"] else None)

    async def all(self, session_id: str, of_user: str | None) -> AsyncGenerator[list[Json], None]:
        """Every turn, the oldest first, some at a time; at least one list, which may be empty."""
        position = 0
        while True:
            piece = await api().session.look_up(
                "turns", session_id, order="after", position=position, limit=AT_ONCE, of_user=of_user
            )
            if piece["turns"]:
                position = piece["turns"][-1]["position"]
            yield await self._complete(piece["turns"])
            if not piece["more"]:
                return

    async def _piece(
        self, session_id: str, of_user: str | None, order: Literal["before", "after", "at"], limit: int, *, at: str
    ) -> Json:
        """Turns from there on, the nearest first; `more` says whether there are others beyond them."""
        turns: list[Json] = []
        place: Json = {"at": at}
        while True:
            left = limit - len(turns)
            piece = await api().session.look_up("turns", session_id, order=order, limit=left, of_user=of_user, **place)
            turns += piece["turns"]
            if not piece["more"] or len(turns) >= limit:
                return {**piece, "turns": turns}
            place = {"position": turns[-1]["position"]}

    async def _page(self, piece: Json, turns: list[Json], before: str | None, after: str | None) -> Json:
        head = {name: piece[name] for name in ("session_id", "incognito", "total")}
        return {**head, "turns": await self._complete(turns), "before": before, "after": after}

    async def _complete(self, turns: Sequence[Json]) -> list[Json]:
        """With files and scores. A copy has those of the turn that it was made of."""
        scores: Json = {}
        for start in range(0, len(turns), AT_ONCE):
            scores |= await api().session.scores([_judged(turn) for turn in turns[start : start + AT_ONCE]])
        files = {each: await self._file(each) for each in dict.fromkeys(_named(turns))}
        return [
            {
                **{name: value for name, value in turn.items() if name != "position"},
                "attachments": [files[each] for each in turn["attachments"]],
                "scores": scores[_judged(turn)],
            }
            for turn in turns
        ]

    async def _file(self, attachment_id: str) -> Json:
        """What is known of a file; of one that was removed its id alone."""
        try:
            view = await api().attachments.look_up(attachment_id)
        except AttachmentMissing:
            return {"id": attachment_id, "name": None, "media_type": None, "size": None}
        return {"id": view.id, "name": view.name, "media_type": view.media_type, "size": view.size}


def _judged(turn: Json) -> str:
    return str(turn["copy_of"] or turn["query_id"])


def _named(turns: Sequence[Json]) -> list[str]:
    return [each for turn in turns for each in turn["attachments"]]

"""Changes files of a workspace so that every change can be undone, and undoes them."""

from __future__ import annotations

import asyncio
import io
import logging
import uuid
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO, Self, TypeVar

from local import failpoints
from local.errors import LocalError, ToolError
from local.services.workspace.change_store import ChangeSelection, ChangeStore, FileChange
from local.services.workspace.content_store import ContentStore
from local.services.workspace.file_writer import NEW_MODE, FileWriter
from local.services.workspace.undo_plan import FileUndo, undo_plan
from local.services.workspace.workspace import Workspace
from local.services.workspace.workspace_path import WorkspacePath, shown

log = logging.getLogger(__name__)
T = TypeVar("T")

DAY_SECONDS = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class ChangeCause:
    """For which call a file is changed. `is_tainted` says that words of strangers are before the model that calls."""

    tool: str
    call_id: str
    query_id: str
    session_id: str
    is_tainted: bool = False


@dataclass(frozen=True, slots=True)
class Retention:
    """How long what files held is kept, and how much of it."""

    days: float = 30.0
    most_bytes: int = 500_000_000


class WorkspaceEditor:
    """Use as `async with`. One change at a time: what a file holds is kept, then noted, then changed at one moment. A
    process that is killed in between leaves what the next one finds out about.

    Raises `ToolError` for what cannot be done, `StoreFailed` where nothing can be noted, and then nothing is changed.
    """

    def __init__(
        self, workspace: Workspace, changes: ChangeStore, contents: ContentStore, retention: Retention | None = None
    ) -> None:
        self.workspace, self.changes = workspace, changes
        self._contents, self._retention = contents, retention or Retention()
        self._writer = FileWriter(workspace)
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Self]:
        """Hold the record, after finding out what a killed process has left."""
        async with self.changes:
            await asyncio.to_thread(self._contents.open)
            for change in await self.changes.unfinished(str(self.workspace.root)):
                await self._find_out(change)
            await self._forget_old()
            yield self

    async def write(
        self, path: WorkspacePath, content: bytes, cause: ChangeCause, expected: str | None, *, keeps_taint: bool
    ) -> FileChange:
        """Have a file hold that, which held what `expected` says. `keeps_taint`: words that were in it stay in it."""

        async def written() -> FileChange:
            change = await self._begun(path, content, cause, expected, keeps_taint=keeps_taint)
            return await self._make(change, partial(self._write, path, io.BytesIO(content), change))

        return await self._in_turn(written)

    async def delete(self, path: WorkspacePath, cause: ChangeCause) -> FileChange:
        """Take a file away; what it held is kept."""

        async def deleted() -> FileChange:
            expected = await asyncio.to_thread(self.workspace.digest, path)
            if expected is None:
                await asyncio.to_thread(self.workspace.facts, path)  # says what is near
            change = await self._begun(path, None, cause, expected, keeps_taint=True)
            return await self._make(change, partial(self._writer.remove, path, change.before or ""))

        return await self._in_turn(deleted)

    async def undo(self, selection: ChangeSelection) -> list[FileChange]:
        """Have the files be as they were before those changes; returns the changes. Raises `ToolError` (not_found,
        changed, not_kept, elsewhere) and leaves all of them as they are where that is not so for each."""

        async def undone() -> list[FileChange]:
            changes = [each for each in await self.changes.select(selection) if each.state == "done"]
            if not changes:
                raise ToolError("there is no change of that kind that could be undone", kind="not_found")
            plan = await asyncio.to_thread(self._plan, changes)
            for undo in plan:
                await asyncio.to_thread(self._undo, undo)
                failpoints.reach("files.undone")
                await self.changes.undone(undo.changes)
            return changes

        return await self._in_turn(undone)

    def texts(self, change: FileChange) -> tuple[bytes, bytes]:
        """What a file held before and after a change; nothing where there was none. Raises `ToolError` (not_kept)."""
        return self._kept(change.before), self._kept(change.after)

    async def is_tainted(self, paths: Sequence[str], digests: Collection[str] = ()) -> bool:
        """Whether words of strangers are in one of those files, or in content of one of those digests."""
        return await self.changes.tainted(str(self.workspace.root), paths, digests)

    async def forget(self, *, session_id: str | None = None, query_id: str | None = None) -> None:
        """Keep nothing of a session or a query any more: its changes can then not be undone."""
        await self.changes.forget(session_id=session_id, query_id=query_id)
        await self._drop_contents()

    async def _begun(
        self,
        path: WorkspacePath,
        content: bytes | None,
        cause: ChangeCause,
        expected: str | None,
        *,
        keeps_taint: bool,
    ) -> FileChange:
        """The change on record, with what it takes to undo it."""
        before, mode = await asyncio.to_thread(self._keep_present, path)
        if before != expected:
            raise ToolError(f"{shown(str(path))} was changed by somebody else meanwhile", kind="changed")
        after = None if content is None else await asyncio.to_thread(self._contents.keep, io.BytesIO(content))
        was_tainted = await self.is_tainted([str(path)], () if before is None else (before,))
        change = FileChange(
            root=str(self.workspace.root),
            path=str(path),
            tool=cause.tool,
            call_id=cause.call_id,
            query_id=cause.query_id,
            session_id=cause.session_id,
            before=before,
            after=after,
            mode=mode,
            folders=0 if before is not None else await asyncio.to_thread(self._missing_folders, path),
            part=f".local2-{uuid.uuid4().hex[:12]}.part",
            was_tainted=was_tainted,
            is_tainted=cause.is_tainted or (keeps_taint and was_tainted),
        )
        failpoints.reach("files.kept")
        return await self.changes.begin(change)

    async def _in_turn(self, work: Callable[[], Coroutine[None, None, T]]) -> T:
        """What `work` returns, alone. It is seen through, whoever stops waiting for it."""

        async def alone() -> T:
            async with self._turn:
                return await work()

        return await asyncio.shield(asyncio.ensure_future(alone()))

    async def _make(self, change: FileChange, work: Callable[[], None]) -> FileChange:
        """The change, once it was made."""
        failpoints.reach("files.begun")
        try:
            await asyncio.to_thread(work)
        except LocalError:
            await self.changes.drop(change)
            raise
        failpoints.reach("files.changed")
        await self.changes.end(change)
        await self._forget_much()
        return change

    def _write(self, path: WorkspacePath, content: BinaryIO, change: FileChange) -> None:
        self._writer.make_folders(path)
        self._writer.put(path, content, change.before, change.part, change.mode)

    def _keep_present(self, path: WorkspacePath) -> tuple[str | None, int]:
        """The digest of what a file holds, which is kept from now on, and its permissions."""
        try:
            facts = self.workspace.facts(path)
            with self.workspace.file(path) as file:
                return self._contents.keep(file), facts.mode
        except ToolError as error:
            if error.kind != "not_found":
                raise
            return None, NEW_MODE

    def _missing_folders(self, path: WorkspacePath) -> int:
        missing = 0
        while (path := path.folder).parts:
            try:
                self.workspace.facts(path)
                break
            except ToolError as error:
                if error.kind != "not_found":
                    raise
                missing += 1
        return missing

    def _plan(self, changes: Sequence[FileChange]) -> list[FileUndo]:
        def present(path: str) -> str | None:
            return self.workspace.digest(self.workspace.path(path))

        plan = undo_plan(changes, str(self.workspace.root), present)
        for undo in plan:
            if undo.target is not None:
                self._contents.get(undo.target).close()  # that it is kept is known before anything is touched
        return plan

    def _undo(self, undo: FileUndo) -> None:
        if undo.present == undo.target:
            return  # an undo that was killed has come so far
        first, path = undo.changes[0], self.workspace.path(undo.path)
        if undo.target is None:
            self._writer.remove(path, undo.present or "")
            self._writer.drop_folders(path, first.folders)
            return
        self._writer.make_folders(path)
        with self._contents.get(undo.target) as content:
            self._writer.put(path, content, undo.present, f".local2-{uuid.uuid4().hex[:12]}.part", first.mode)

    def _kept(self, digest: str | None) -> bytes:
        if digest is None:
            return b""
        with self._contents.get(digest) as content:
            return content.read()

    async def _find_out(self, change: FileChange) -> None:
        """Whether a change that a killed process has begun was made: then it is noted, else forgotten."""
        path = self.workspace.path(change.path)
        try:
            await asyncio.to_thread(self._writer.drop_part, path, change.part)
            present = await asyncio.to_thread(self.workspace.digest, path)
        except ToolError as error:
            log.warning("whether %s was changed in call %s is not known: %s", change.path, change.call_id, error)
            return
        await (self.changes.drop(change) if present == change.before else self.changes.end(change))

    async def _forget_old(self) -> None:
        await self.changes.forget_before(self.changes.clock() - self._retention.days * DAY_SECONDS)
        await self._drop_contents()
        await self._forget_much()

    async def _forget_much(self) -> None:
        while self._contents.size > self._retention.most_bytes:
            if not await self.changes.forget_oldest():
                return
            await self._drop_contents()

    async def _drop_contents(self) -> None:
        kept = await self.changes.contents()
        await asyncio.to_thread(self._contents.drop_all_but, kept)

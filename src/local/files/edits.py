"""Changes files of a workspace so that every change can be undone, and undoes them."""

from __future__ import annotations

import asyncio
import difflib
import hashlib
import io
import logging
import os
import shutil
import sqlite3
import stat
import time
import uuid
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Literal, Self, TypeVar

from local.core import failpoints
from local.core.database import OwnedDatabase, store_failure
from local.core.errors import LocalError, ToolError
from local.core.workspace import Workspace, WorkspacePath, open_regular, shown

# What tools have changed in workspaces, and which files hold untrusted text, in one SQLite file.

_MIGRATIONS = (
    """
    CREATE TABLE changes (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        root TEXT NOT NULL, path TEXT NOT NULL, tool TEXT NOT NULL,
        call_id TEXT NOT NULL, query_id TEXT NOT NULL, session_id TEXT NOT NULL,
        before TEXT, after TEXT, mode INTEGER NOT NULL, folders INTEGER NOT NULL, part TEXT NOT NULL,
        was_tainted INTEGER NOT NULL, is_tainted INTEGER NOT NULL,
        state TEXT NOT NULL, at REAL NOT NULL
    );
    CREATE INDEX changes_by_call ON changes (call_id);
    CREATE INDEX changes_by_query ON changes (query_id);
    CREATE INDEX changes_by_session ON changes (session_id);
    CREATE TABLE tainted_files (root TEXT NOT NULL, path TEXT NOT NULL, PRIMARY KEY (root, path)) WITHOUT ROWID;
    CREATE TABLE tainted_contents (digest TEXT PRIMARY KEY) WITHOUT ROWID;
    """,
    """
    ALTER TABLE changes ADD COLUMN is_own INTEGER NOT NULL DEFAULT 0;
    CREATE TABLE own_files (root TEXT NOT NULL, path TEXT NOT NULL, PRIMARY KEY (root, path)) WITHOUT ROWID;
    CREATE TABLE own_contents (digest TEXT PRIMARY KEY) WITHOUT ROWID;
    UPDATE changes SET is_own = 1 WHERE tool = 'write_file' AND state = 'done' AND NOT is_tainted;
    INSERT OR IGNORE INTO own_files SELECT root, path FROM changes WHERE is_own;
    INSERT OR IGNORE INTO own_contents SELECT after FROM changes WHERE is_own AND after IS NOT NULL;
    """,
)
_COLUMNS = (
    "root, path, tool, call_id, query_id, session_id, before, after, mode, folders, part, was_tainted, is_tainted,"
    " is_own, state, at"
)


@dataclass(frozen=True, slots=True)
class FileChange:
    """A change of one file by one call. `before` and `after` are the SHA-256 of its content, None if it did not exist;
    `mode` are its permissions before, `folders` how many parent folders were made for it, `part` the name under which
    it is written until it is complete, `at` seconds since 1970. `is_own`: its whole content then was written here in
    untainted turns.
    """

    root: str
    path: str
    tool: str
    call_id: str
    query_id: str
    session_id: str
    before: str | None
    after: str | None
    mode: int
    folders: int
    part: str
    was_tainted: bool
    is_tainted: bool
    is_own: bool = False
    at: float = 0.0
    state: Literal["begun", "done", "undone"] = "begun"
    number: int = 0


@dataclass(frozen=True, slots=True)
class ChangeSelection:
    """A filter for recorded changes: of a call, of a query, from one time on up to another, or all of them, the latest
    first."""

    call_id: str | None = None
    query_id: str | None = None
    since: float | None = None
    until: float | None = None
    limit: int = 1000


class ChangeStore(OwnedDatabase):
    """The record of all changes, in SQLite. Use as `async with`. Every coroutine returns after its commit; raises
    `StoreFailed`, `StoreFull` where the disk is full, `StoreFenced` in a process that another one has replaced."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        """`clock` gives seconds since 1970."""
        super().__init__(path, _MIGRATIONS)
        self.clock = clock

    async def begin(self, change: FileChange) -> FileChange:
        """Note a change that is about to be made; returns it with its number and time."""
        noted = replace(change, at=self.clock())
        values = [getattr(noted, name) for name in _COLUMNS.split(", ")]
        sql = f"INSERT INTO changes ({_COLUMNS}) VALUES ({', '.join('?' * len(values))})"
        number = await self.write(lambda db: db.execute(sql, values).lastrowid)
        return replace(noted, number=number or 0)

    async def end(self, change: FileChange) -> None:
        """Note that a change was made, and whose words the file holds now."""

        def work(db: sqlite3.Connection) -> None:
            db.execute("UPDATE changes SET state = 'done' WHERE number = ?", (change.number,))
            _mark(db, change, is_tainted=change.is_tainted, digest=change.after, is_own=change.is_own)

        await self.write(work)

    async def drop(self, change: FileChange) -> None:
        """Forget one that was not made."""
        await self.write(lambda db: db.execute("DELETE FROM changes WHERE number = ?", (change.number,)))

    async def undone(self, changes: Sequence[FileChange]) -> None:
        """Note that changes of one file were undone; the first was made first."""

        def work(db: sqlite3.Connection) -> None:
            for change in changes:
                db.execute("UPDATE changes SET state = 'undone' WHERE number = ?", (change.number,))
            _mark(db, changes[0], is_tainted=changes[0].was_tainted, digest=changes[0].before)

        await self.write(work)

    async def unfinished(self, root: str) -> list[FileChange]:
        """The changes of a workspace that a killed process has begun and not ended."""
        sql = "SELECT * FROM changes WHERE state = 'begun' AND root = ? ORDER BY number"
        return await self.run(lambda db: [_change(row) for row in db.execute(sql, (root,))])

    async def select(self, selection: ChangeSelection) -> list[FileChange]:
        """The changes that were made, the latest first, the undone ones included."""
        wanted = {
            "call_id = ?": selection.call_id,
            "query_id = ?": selection.query_id,
            "at >= ?": selection.since,
            "at < ?": selection.until,
        }
        asked = {clause: value for clause, value in wanted.items() if value is not None}
        where = " AND ".join(["state != 'begun'", *asked])
        sql = f"SELECT * FROM changes WHERE {where} ORDER BY number DESC LIMIT ?"
        values = (*asked.values(), selection.limit)
        return await self.run(lambda db: [_change(row) for row in db.execute(sql, values)])

    async def tainted(self, root: str, paths: Collection[str], digests: Collection[str] = ()) -> bool:
        """Whether one of those files, or content of one of those digests, holds untrusted text."""

        def work(db: sqlite3.Connection) -> bool:
            known = "SELECT 1 FROM tainted_contents WHERE digest = ?"
            if any(db.execute(known, (digest,)).fetchone() for digest in digests):
                return True
            marked = {row["path"] for row in db.execute("SELECT path FROM tainted_files WHERE root = ?", (root,))}
            return not marked.isdisjoint(paths)

        return await self.run_short(work)

    async def own(self, root: str, paths: Collection[str], digests: Collection[str] = ()) -> bool:
        """Whether those files, and all content of those digests, were written here in untainted turns."""

        def work(db: sqlite3.Connection) -> bool:
            content = "SELECT 1 FROM own_contents WHERE digest = ?"
            file = "SELECT 1 FROM own_files WHERE root = ? AND path = ?"
            return all(db.execute(content, (digest,)).fetchone() for digest in digests) and all(
                db.execute(file, (root, path)).fetchone() for path in paths
            )

        return await self.run_short(work)

    async def knows_untrusted_contents(self) -> bool:
        """Whether untrusted text was ever written here."""
        sql = "SELECT 1 FROM tainted_contents LIMIT 1"
        return await self.run_short(lambda db: db.execute(sql).fetchone() is not None)

    async def forget(self, *, session_id: str | None = None, query_id: str | None = None) -> None:
        """Remove permanently the notes of a session or of a query; the origin of files' content stays."""
        column, key = ("session_id", session_id) if session_id is not None else ("query_id", query_id)
        await self.erase(lambda db: db.execute(f"DELETE FROM changes WHERE {column} = ?", (key,)).rowcount)

    async def forget_before(self, at: float) -> None:
        """Remove the notes from before a time."""
        await self.erase(lambda db: db.execute("DELETE FROM changes WHERE at < ?", (at,)).rowcount)

    async def forget_oldest(self) -> int:
        """Remove the oldest twentieth of the changes; returns how many those were."""
        oldest = "SELECT number FROM changes ORDER BY number LIMIT (SELECT 1 + count(*) / 20 FROM changes)"
        return await self.erase(lambda db: db.execute(f"DELETE FROM changes WHERE number IN ({oldest})").rowcount)

    async def contents(self) -> set[str]:
        """The digests that changes refer to."""
        sql = "SELECT before, after FROM changes"
        return await self.run(lambda db: {each for row in db.execute(sql) for each in row if each is not None})


def _mark(
    db: sqlite3.Connection, change: FileChange, *, is_tainted: bool, digest: str | None, is_own: bool = False
) -> None:
    """Mark a file and the folders made for it: content may be in their names, which lists show."""
    sql = "INSERT OR IGNORE INTO" if is_tainted else "DELETE FROM"
    where = "VALUES (?, ?)" if is_tainted else "WHERE root = ? AND path = ?"
    folders = list(PurePosixPath(change.path).parents)[: change.folders]
    db.executemany(f"{sql} tainted_files {where}", [(change.root, str(path)) for path in (change.path, *folders)])
    if is_tainted and digest is not None:
        db.execute("INSERT OR IGNORE INTO tainted_contents VALUES (?)", (digest,))
    if is_own:
        own = [(change.root, str(path)) for path in (change.path, *folders)]
        db.executemany("INSERT OR IGNORE INTO own_files VALUES (?, ?)", own)
        db.execute("INSERT OR IGNORE INTO own_contents VALUES (?)", (digest,))


def _change(row: sqlite3.Row) -> FileChange:
    fields = {name: row[name] for name in row.keys()}  # noqa: SIM118 - a row iterates over its values
    return FileChange(**fields | {name: bool(row[name]) for name in ("was_tainted", "is_tainted", "is_own")})


# What files held, by the SHA-256 of it: kept so that an undo can restore it.

PIECE = 1024 * 1024
_PART = ".part"


class ContentStore:
    """The earlier contents of files: a folder with a file for each, mode 0600, on the disk when `keep` returns. `size`
    is that of all of them in bytes. Raises `StoreFailed`, `StoreFull` where the disk is full."""

    def __init__(self, folder: Path, most_bytes: int) -> None:
        """No single content may have more than `most_bytes`."""
        self._folder, self._most = folder, most_bytes
        self.size = 0

    def open(self) -> None:
        """Make the folder, and remove the unfinished files of a killed process."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for path in self._folder.glob(f"*{_PART}"):
            path.unlink(missing_ok=True)
        self.size = sum(path.stat().st_size for path in self._files())

    def keep(self, content: BinaryIO) -> str:
        """Keep what can be read there; returns its SHA-256. Raises `ToolError` (too_large)."""
        part = self._folder / f"{uuid.uuid4().hex}{_PART}"
        try:
            digest, size = self._copy(content, part)
            kept = self._folder / digest
            if kept.exists():
                part.unlink()
            else:
                part.replace(kept)
                self._sync()
                self.size += size
            return digest
        except OSError as error:
            raise store_failure(part, error, what="cannot be written: ") from None
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)

    def get(self, digest: str) -> BinaryIO:
        """Return stored content. Raises `ToolError` (not_kept)."""
        try:
            return (self._folder / digest).open("rb")
        except OSError:
            raise ToolError("what was there before is not kept any more", kind="not_kept") from None

    def drop_all_but(self, digests: Collection[str]) -> None:
        """Remove content without references."""
        for path in self._files():
            if path.name not in digests:
                self.size -= path.stat().st_size
                path.unlink(missing_ok=True)

    def _copy(self, content: BinaryIO, part: Path) -> tuple[str, int]:
        found, size = hashlib.sha256(), 0
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            while piece := content.read(PIECE):
                size += len(piece)
                if size > self._most:
                    text = f"it has more than {self._most} bytes, too much to be kept for an undo; nothing was changed"
                    raise ToolError(text, kind="too_large")
                found.update(piece)
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        return found.hexdigest(), size

    def _files(self) -> Iterator[Path]:
        return (path for path in self._folder.iterdir() if path.suffix != _PART)

    def _sync(self) -> None:
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


# Writes and removes files of the workspace, each at one moment, and only what still is as it was expected.

NEW_MODE = 0o644
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class FileWriter:
    """Writes and removes files of a workspace, each atomically. Each method receives the SHA-256 of the expected
    present content, None for no file, and raises `ToolError` (changed) for any other; otherwise as `Workspace` does.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def put(
        self, path: WorkspacePath, content: BinaryIO, expected: str | None, part: str, mode: int = NEW_MODE
    ) -> None:
        """Have a file hold that content: written beside it under the name `part`, synced, then given its name."""
        with self._workspace.folder(path.folder) as folder, self._clean(folder, part):
            opened = os.open(part, _NEW, 0o600, dir_fd=folder)
            with os.fdopen(opened, "wb") as file:
                shutil.copyfileobj(content, file)
                os.fchmod(file.fileno(), stat.S_IMODE(mode) & 0o777)
                file.flush()
                os.fsync(file.fileno())
            failpoints.reach("files.written")
            self._require(folder, path, expected)
            os.replace(part, path.name, src_dir_fd=folder, dst_dir_fd=folder)
            os.fsync(folder)

    def remove(self, path: WorkspacePath, expected: str) -> None:
        """Take a file away."""
        with self._workspace.folder(path.folder) as folder:
            self._require(folder, path, expected)
            os.unlink(path.name, dir_fd=folder)
            os.fsync(folder)

    def make_folders(self, path: WorkspacePath) -> int:
        """Make the folders on the way to a file that are not there; returns how many that were."""
        made = 0
        for length in range(1, len(path.parts)):
            within = WorkspacePath(path.parts[:length])
            with self._workspace.folder(within.folder) as folder, suppress(FileExistsError):
                os.mkdir(within.name, 0o755, dir_fd=folder)
                made += 1
        return made

    def drop_folders(self, path: WorkspacePath, number: int) -> None:
        """Take away that many of the folders on the way to a file, as far as they are empty."""
        for _ in range(number):
            path = path.folder
            try:
                with self._workspace.folder(path.folder) as folder:
                    os.rmdir(path.name, dir_fd=folder)
            except ToolError:
                return

    def drop_part(self, path: WorkspacePath, part: str) -> None:
        """Remove the unfinished file that a killed process has left beside a file."""
        with suppress(ToolError), self._workspace.folder(path.folder) as folder:
            os.unlink(part, dir_fd=folder)

    @contextmanager
    def _clean(self, folder: int, part: str) -> Iterator[None]:
        try:
            yield
        except BaseException:
            with suppress(OSError):
                os.unlink(part, dir_fd=folder)
            raise

    def _require(self, folder: int, path: WorkspacePath, expected: str | None) -> None:
        """Raise `ToolError` unless the present content is the expected one."""
        try:
            with os.fdopen(open_regular(folder, path), "rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError:
            found = None
        if found != expected:
            what = "is there meanwhile" if expected is None else "was changed by somebody else meanwhile"
            raise ToolError(f"{shown(str(path))} {what}; nothing was written", kind="changed")


# Decides whether changes can be undone, and what each file is to hold then.

MOST_TOLD = 5


@dataclass(frozen=True, slots=True)
class FileUndo:
    """The step of an undo for one file, which holds `present` and shall hold `target`, both as SHA-256, None for no
    file; `changes` are those that are undone by that, the first one first."""

    path: str
    present: str | None
    target: str | None
    changes: Sequence[FileChange]


def undo_plan(changes: Iterable[FileChange], root: str, present: Callable[[str], str | None]) -> list[FileUndo]:
    """Return the changes that undo those changes, by file. `present` returns the SHA-256 of a file's present content.

    Raises `ToolError`: changed, if a file's content is not that of its last change or was changed by another program
    between two of them; elsewhere, if they were made in another workspace.
    """
    by_path: defaultdict[str, list[FileChange]] = defaultdict(list)
    for change in sorted(changes, key=lambda change: change.number):
        if change.root != root:
            text = f"{shown(change.path)} was changed in the workspace {change.root}, and this one is {root}"
            raise ToolError(text, kind="elsewhere")
        by_path[change.path].append(change)
    plan = [FileUndo(path, present(path), made[0].before, made) for path, made in by_path.items()]
    if faults := [fault for undo in plan if (fault := _fault(undo))]:
        more = f"; and {len(faults) - MOST_TOLD} more" if len(faults) > MOST_TOLD else ""
        raise ToolError(f"nothing was undone: {'; '.join(faults[:MOST_TOLD])}{more}", kind="changed")
    return plan


def _fault(undo: FileUndo) -> str | None:
    """Why a file cannot be brought back without losing something; None if it can."""
    if any(earlier.after != later.before for earlier, later in pairwise(undo.changes)):
        return f"{shown(undo.path)} was changed by somebody else between these changes"
    if undo.present in (undo.changes[-1].after, undo.target):
        return None
    what = "is not there any more" if undo.present is None else "was changed since"
    return f"{shown(undo.path)} {what}; undo later changes first"


log = logging.getLogger(__name__)
T = TypeVar("T")

DAY_SECONDS = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class ChangeCause:
    """The call that changes a file. `is_tainted` says that the model that calls has read untrusted text."""

    tool: str
    call_id: str
    query_id: str
    session_id: str
    is_tainted: bool = False


@dataclass(frozen=True, slots=True)
class Retention:
    """The limits of the record: how long what files held is kept, and how much of it."""

    days: float = 30.0
    most_bytes: int = 500_000_000


class WorkspaceEditor:
    """Changes files of a workspace and undoes the changes. Use as `async with`. One change at a time: the present
    content is stored, then the change is noted, then made atomically. The next process repairs the state after a
    process was killed in between.

    Raises `ToolError` for what cannot be done, `StoreFailed` if the note cannot be written, and then nothing is
    changed.
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
        """Hold the record, after repairing the state that a killed process has left."""
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
        """Delete a file; its content is stored."""

        async def deleted() -> FileChange:
            expected = await asyncio.to_thread(self.workspace.digest, path)
            if expected is None:
                await asyncio.to_thread(self.workspace.facts, path)  # the error names similar files
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
        """Return a file's content before and after a change; empty if there was none. Raises `ToolError` (not_kept)."""
        return self._kept(change.before), self._kept(change.after)

    async def is_tainted(self, paths: Sequence[str], digests: Collection[str] = ()) -> bool:
        """Whether untrusted text is in one of those files, or in content of one of those digests."""
        return await self.changes.tainted(str(self.workspace.root), paths, digests)

    async def is_own(self, paths: Collection[str], digests: Collection[str] = ()) -> bool:
        """Whether all of it was written here in untainted turns, and not changed by others since."""
        return await self.changes.own(str(self.workspace.root), paths, digests)

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
        """Return the recorded change, with the data to undo it."""
        before, mode = await asyncio.to_thread(self._keep_present, path)
        if before != expected:
            raise ToolError(f"{shown(str(path))} was changed by somebody else meanwhile", kind="changed")
        after = None if content is None else await asyncio.to_thread(self._contents.keep, io.BytesIO(content))
        was_tainted = await self.is_tainted([str(path)], () if before is None else (before,))
        is_tainted = cause.is_tainted or (keeps_taint and was_tainted)
        is_kept_own = not keeps_taint or (before is not None and await self.is_own([str(path)], [before]))
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
            is_tainted=is_tainted,
            is_own=after is not None and is_kept_own and not is_tainted,
        )
        failpoints.reach("files.kept")
        return await self.changes.begin(change)

    async def _in_turn(self, work: Callable[[], Coroutine[None, None, T]]) -> T:
        """Return the result of `work`, run alone. It runs to its end even if the caller stops waiting."""

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
        """Store a file's present content; returns its digest and the file's permissions."""
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


# How a text file has changed, in the unified form.

MOST_LINES = 400
MOST_CHARS_OF_LINE = 400
MOST_BYTES = 2_000_000  # of both sides; comparing more takes too long
NO_NEWLINE = "\\ No newline at end of file"


def text_diff(path: str, before: bytes, after: bytes) -> str:
    """Return the lines that differ, with three around them; a sentence for binary content or one too long to
    compare.
    """
    if len(before) + len(after) > MOST_BYTES:
        return f"{path}: {len(before)} bytes became {len(after)}, too much to compare"
    try:
        old, new = (_lines(side.decode()) for side in (before, after))
    except UnicodeDecodeError:
        return f"{path}: {len(before)} bytes became {len(after)}, no text"
    lines = list(difflib.unified_diff(old, new, path, path, lineterm=""))
    cut = [line if len(line) <= MOST_CHARS_OF_LINE else f"{line[:MOST_CHARS_OF_LINE]}…" for line in lines[:MOST_LINES]]
    if len(lines) > MOST_LINES:
        cut.append(f"… and {len(lines) - MOST_LINES} more lines")
    return "\n".join(cut)


def _lines(text: str) -> list[str]:
    """The lines, with a mark after a last one that does not end."""
    lines = text.split("\n")
    if lines[-1]:
        return [*lines[:-1], f"{lines[-1]}\n{NO_NEWLINE}"]
    return lines[:-1]

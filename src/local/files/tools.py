"""The tools that read and change files of the workspace, and their common parts."""

from __future__ import annotations

import asyncio
import difflib
import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Annotated

from pydantic import Field

from local.core.config import Settings
from local.core.errors import ConfigError, ToolError
from local.core.trust import TrustRegistry
from local.core.workspace import CloneSearch, FileFacts, Workspace, WorkspacePath, folded, on_one_line, shown
from local.files.edits import ChangeCause, FileChange, WorkspaceEditor, text_diff
from local.files.git import GitProgram, is_repository
from local.files.outlines import FilePart, Outline, file_outline, is_code
from local.tools.tool import Tool, ToolOutput


class FilesConfig(Settings):
    """`files.yaml`; the comments there say what each key means."""

    max_read_bytes: int = Field(2_000_000, ge=1, le=100_000_000)
    max_write_bytes: int = Field(2_000_000, ge=1, le=100_000_000)
    max_list_entries: int = Field(5000, ge=1, le=100_000)
    whole_file_chars: int = Field(4000, ge=0)
    max_part_chars: int = Field(24_000, ge=100)
    max_search_hits: int = Field(5000, ge=1, le=100_000)
    max_symbol_files: int = Field(5000, ge=1, le=100_000)
    search_seconds: float = Field(15, gt=0, le=100)
    protected: tuple[str, ...] = (
        ".git", ".hg", ".svn", ".vscode", ".idea", ".zed", ".claude", ".cursor", ".local2", ".husky", ".envrc",
        ".mcp.json", ".bashrc", ".bash_profile", ".profile", ".zshrc", ".zshenv", ".gitconfig", ".ssh",
    )  # fmt: skip
    strangers: tuple[str, ...] = ("node_modules/*", "*/node_modules/*", "*/site-packages/*", "*.eml", "*.mbox")
    skill_folders: tuple[Path, ...] = ()
    strange_folders: bool = True
    strange_clones: bool = True
    keep_days: float = Field(30, gt=0)
    keep_megabytes: float = Field(500, gt=0)
    keep_file_megabytes: float = Field(50, gt=0)


class WorkspaceFiles:
    """The workspace as the tools use it. `editor` is open for as long as the tools are served; `trust` knows which
    folders the owner trusts."""

    def __init__(self, config: FilesConfig, editor: WorkspaceEditor, trust: TrustRegistry | None = None) -> None:
        self.config, self.editor, self._trust = config, editor, trust

    @property
    def workspace(self) -> Workspace:
        """Return the workspace."""
        return self.editor.workspace

    def path(self, tool: Tool, text: str) -> WorkspacePath:
        """A path to look at. Raises `ToolError`: not_yours for anybody but the owner; outside, bad_path."""
        tool.require_owner()
        return self.workspace.path(text)

    def path_to_change(self, tool: Tool, text: str) -> WorkspacePath:
        """A path that may be written to. Raises `ToolError`: protected, and as `path`."""
        path = self.path(tool, text)
        if not path.parts:
            raise ToolError("name a file; the workspace itself is a folder", kind="not_a_file")
        path.require_unprotected(self.config.protected)
        return path

    async def read(self, path: WorkspacePath) -> bytes:
        """All of a file, as far as that may be read."""
        return await asyncio.to_thread(self.workspace.read, path, self.config.max_read_bytes)

    async def write(
        self, tool: Tool, path: WorkspacePath, content: bytes, before: bytes | None, *, keeps_taint: bool
    ) -> FileChange:
        """Have a file hold that, which held `before`, None for no file."""
        if len(content) > self.config.max_write_bytes:
            text = f"{len(content)} bytes are more than may be written at once, {self.config.max_write_bytes}"
            raise ToolError(text, kind="too_large")
        expected = None if before is None else hashlib.sha256(before).hexdigest()
        return await self.editor.write(path, content, cause_of(tool), expected, keeps_taint=keeps_taint)

    async def taint_of(self, paths: Iterable[str], digests: Collection[str] = ()) -> FileTaint:
        """Whether one of those files, or one of their names, may contain untrusted text. `digests` are the SHA-256 of
        their content: a copy of an untrusted file is untrusted, too.
        """
        named, root = list(paths), str(self.workspace.root)
        trusted = await asyncio.to_thread(self._trusted_folders)
        if not await self._is_untrusted(named, digests, trusted):
            return FileTaint()
        if root in trusted or await self._is_untrusted(named, digests, {*trusted, root}):
            return FileTaint(tainted=True)
        return FileTaint(tainted=True, folder=root)

    async def _is_untrusted(self, paths: Sequence[str], digests: Collection[str], trusted: Collection[str]) -> bool:
        if await self.editor.is_tainted(paths, digests):
            return True
        if await self.editor.is_own(paths, digests):
            return False
        patterns = [folded(pattern) for pattern in self.config.strangers]
        if any(fnmatchcase(folded(path), pattern) for path in paths for pattern in patterns):
            return True
        if self.config.strange_clones and await asyncio.to_thread(self._are_in_strange_clone, paths, trusted):
            return True
        return self.config.strange_folders and not self._are_in_trusted_folder(paths, trusted)

    def _trusted_folders(self) -> Collection[str]:
        """Return the paths of the folders that the owner trusts; none if unknown."""
        try:
            return self._trust.all() if self._trust is not None else ()
        except ConfigError:
            return ()

    def _are_in_trusted_folder(self, paths: Iterable[str], trusted: Collection[str]) -> bool:
        """Whether each file is in a trusted folder: the workspace, or one within it."""
        root = self.workspace.root
        return str(root) in trusted or all(
            any(str(folder) in trusted for folder in _folders_of(root, path)) for path in paths
        )

    def _are_in_strange_clone(self, paths: Iterable[str], trusted: Collection[str]) -> bool:
        return any(str(clone.resolve()) not in trusted for clone in CloneSearch(self.workspace).of(paths))


@dataclass(frozen=True, slots=True)
class FileTaint:
    """The answer to whether files may hold untrusted text. `folder` is the folder that the owner would have to trust
    so that they do not; empty where trust does not change it."""

    tainted: bool = False
    folder: str = ""


def _folders_of(root: Path, path: str) -> Iterator[Path]:
    """Return the entry at a path below the workspace, and its parent folders, up to the workspace."""
    place = root / path
    yield place
    yield from (folder for folder in place.parents if folder.is_relative_to(root))


def cause_of(tool: Tool) -> ChangeCause:
    """The call that a tool is running. Raises `LookupError` outside of one."""
    request = tool.request()
    session_id = tool.asked_by().session_id or request.query_id
    return ChangeCause(tool.name, request.call_id, request.query_id, session_id, request.tainted)


def text_of(path: WorkspacePath, content: bytes) -> str:
    """Return the text of a file, with its line ends unchanged. Raises `ToolError` (not_text)."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        why = f"{shown(str(path))} is no UTF-8 text (byte {error.start}), so it cannot be edited in parts"
        raise ToolError(why, kind="not_text") from None


# What each tool for files is.

TAIL_SHARE = 4  # a quarter of a result that is cut off is from the end


class FileTool(Tool):
    """A tool that works on files of the workspace; each one declares its own safety level."""

    trusted = True  # each result is marked if it shows untrusted content

    def __init__(self, config: FilesConfig, files: WorkspaceFiles) -> None:
        super().__init__(config)
        self._files = files

    def as_text(self, text: str, taint: FileTaint) -> ToolOutput:
        """Return a result, of which only the beginning and the end are shown if it is too long."""
        tail = self.max_result_chars // TAIL_SHARE
        return ToolOutput(text, tainted=taint.tainted, folder=taint.folder, tail=tail)


class ChangingFileTool(FileTool):
    """A tool that changes a file, so that it can be undone."""

    effect = "write"
    safety = "L1"
    category = "write"


# The tool that takes a file away.


class DeleteFileTool(ChangingFileTool):
    """Delete one file of the workspace. What it held is kept, so that the user can have it back."""

    name = "delete_file"
    replaces = "rm"

    async def run(self, path: Annotated[str, "The file, from the workspace on"]) -> ToolOutput:
        """That the file is gone."""
        where = self._files.path_to_change(self, path)
        await self._files.editor.delete(where, cause_of(self))
        return ToolOutput(f"{where} is deleted; what it held is kept, and the user can have it back.", undoable=True)


# The tool that changes one place of a file.

MOST_PLACES = 10
SHOWN_CHARS = 160
NEAR = 0.6  # of 1: how alike a line has to be to be named


class EditFileTool(ChangingFileTool):
    """Replace text in a file of the workspace. The old text has to be copied exactly, with its indentation, and stand
    there once: give enough lines around the place. The result shows what has changed. The user can undo it."""

    name = "edit_file"
    replaces = "sed -i, patch"

    async def run(
        self,
        path: Annotated[str, "The file, from the workspace on"],
        old: Annotated[str, Field(min_length=1, description="The text to replace, exactly as it stands there")],
        new: Annotated[str, "The text to put in its place"],
    ) -> ToolOutput:
        """The change as a diff."""
        where = self._files.path_to_change(self, path)
        before = await self._files.read(where)
        taint = await self._files.taint_of([str(where)], [hashlib.sha256(before).hexdigest()])
        try:
            edited = replaced(where, text_of(where, before), old, new)
        except ToolError as error:
            raise ToolError(str(error), kind=error.kind, tainted=taint.tainted, folder=taint.folder) from None  # a line
        after = edited.encode("utf-8", "replace")
        await self._files.write(self, where, after, before, keeps_taint=True)
        diff = text_diff(str(where), before, after)
        return ToolOutput(diff, undoable=True, tainted=taint.tainted, folder=taint.folder)


def replaced(path: WorkspacePath, text: str, old: str, new: str) -> str:
    """The text with `new` in the place of `old`, whose line ends are those of the text. Raises `ToolError`:
    not_found, not_unique, unchanged."""
    if "\r\n" in text and "\r\n" not in old:
        old, new = old.replace("\n", "\r\n"), new.replace("\r\n", "\n").replace("\n", "\r\n")
    if old == new:
        raise ToolError("old and new are the same text; nothing was changed", kind="unchanged")
    if (times := text.count(old)) == 1:
        return text.replace(old, new)
    if times == 0:
        raise ToolError(f"that text is not in {path}; nothing was changed{_near(text, old)}", kind="not_found")
    places, start = list[str](), 0
    while (at := text.find(old, start)) >= 0 and len(places) < MOST_PLACES:
        places.append(str(text.count("\n", 0, at) + 1))
        start = at + 1
    more = ", …" if times > MOST_PLACES else ""
    words = f"that text stands {times} times in {path}, at the lines {', '.join(places)}{more}"
    raise ToolError(f"{words}; nothing was changed. Give more lines around the one that is meant", kind="not_unique")


def _near(text: str, old: str) -> str:
    """Return what the model may have meant: the same text with other white space, or the line that is most like its
    first one.
    """
    lines = text.splitlines()
    wanted = next((line for line in old.splitlines() if line.strip()), "").strip()
    for number, line in enumerate(lines, start=1):
        if wanted and line.strip() == wanted:
            return f". Line {number} has its first line, with other blanks or other lines after it: {_cut(line)!r}"
    near = difflib.get_close_matches(wanted, {line.strip() for line in lines[:5000]}, n=1, cutoff=NEAR)
    if not near:
        return ""
    number = next(number for number, line in enumerate(lines, start=1) if line.strip() == near[0])
    return f". Most like its first line is line {number}: {_cut(lines[number - 1])!r}"


def _cut(line: str) -> str:
    return line if len(line) <= SHOWN_CHARS else f"{line[:SHOWN_CHARS]}…"


# The sorts of content of a workspace, so that tools without use in it are not offered.

MOST_ENTRIES = 1000  # that are looked at
MOST_DEPTH = 4
KINDS = {"files", "programs", "repository"}
CLOSED = (".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv")  # not looked into unless they are named


class WorkspaceContents:
    """A record of the kinds of content in the workspace. `kinds` are those found so far: files, programs, repository.
    Kinds that have disappeared since still count.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.kinds: set[str] = set()

    def is_complete(self) -> bool:
        """Whether there is nothing left to look for."""
        return self.kinds == KINDS

    def look(self) -> bool:
        """Look for kinds that were not there yet; returns whether there is a new one. Blocks; nothing is looked for
        twice.
        """
        before = len(self.kinds)
        try:
            if "repository" not in self.kinds and GitProgram.installed() and is_repository(self._workspace):
                self.kinds.add("repository")
            if "programs" not in self.kinds:
                self._look_at_files()
        except ToolError:  # the workspace is gone: each call reports it
            return False
        return len(self.kinds) > before

    def _look_at_files(self) -> None:
        entries = self._workspace.entries(self._workspace.path("."), MOST_DEPTH, CLOSED)
        for entry in islice(entries, MOST_ENTRIES):
            if entry.kind == "file":
                self.kinds.add("files")
                if is_code(entry.path):
                    self.kinds.add("programs")
                    return


# The tool that lists the content of a folder.


class ListFilesTool(FileTool):
    """List files and folders of the workspace. It tells their sizes. With a pattern such as *.py or src/*/test_*.py
    only what it fits, by name or by path."""

    name = "list_files"
    safety = "L0"
    category = "read"
    replaces = "ls, find, tree"

    async def run(
        self,
        path: Annotated[str, "The folder, from the workspace on; . is the workspace"] = ".",
        pattern: Annotated[str, "Which names or paths, such as *.md; empty for all"] = "",
        depth: Annotated[int, Field(ge=1, le=40, description="How many folders deep to look")] = 3,
    ) -> ToolOutput:
        """A line for each: a folder ends with /, a file is followed by its size and the day of its last change."""
        where = self._files.path(self, path)
        most = self._files.config.max_list_entries
        found = await asyncio.to_thread(self._found, where, pattern, depth, most + 1)
        lines = [_line(entry) for entry in found[:most]]
        if len(found) > most:
            lines.append(f"… and more: the first {most} are shown. Name a folder, or give a pattern.")
        taint = await self._files.taint_of(entry.path for entry in found[:most])
        text = "\n".join([f"{where}/ ({_counted(found[:most])})", *lines])
        return ToolOutput(text, tainted=taint.tainted, folder=taint.folder)

    def _found(self, where: WorkspacePath, pattern: str, depth: int, most: int) -> Sequence[FileFacts]:
        entries = self._files.workspace.entries(where, depth, CLOSED)
        return list(islice((entry for entry in entries if not pattern or _fits(entry.path, pattern)), most))


def _fits(path: str, pattern: str) -> bool:
    return fnmatchcase(path.rpartition("/")[2], pattern) or fnmatchcase(path, pattern)


def _counted(found: Iterable[FileFacts]) -> str:
    kinds = [entry.kind for entry in found]
    return f"{kinds.count('file')} files, {kinds.count('folder')} folders"


def _line(entry: FileFacts) -> str:
    path = on_one_line(entry.path)
    if entry.kind == "folder":
        return f"{path}/"
    if entry.kind != "file":
        return f"{path} ({entry.kind}, not followed)" if entry.kind == "link" else f"{path} ({entry.kind})"
    return f"{path}  {size_of(entry.size)}  {datetime.fromtimestamp(entry.modified_at):%Y-%m-%d}"


def size_of(size: int) -> str:
    """A number of bytes for a person."""
    for unit, length in (("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1000)):
        if size >= length:
            return f"{size / length:.1f} {unit}"
    return f"{size} B"


# The tool that describes a file without its content.


class FileStatsTool(FileTool):
    """Tell the size of a file of the workspace, how many lines it has, when it was changed, and its permissions; of a
    folder what is in it."""

    name = "file_stats"
    safety = "L0"
    category = "read"
    replaces = "stat, wc, file"

    async def run(self, path: Annotated[str, "The file or folder, from the workspace on"]) -> ToolOutput:
        """A line for each fact."""
        where = self._files.path(self, path)
        facts = await asyncio.to_thread(self._files.workspace.facts, where)
        lines = [f"{where}: {facts.kind}, {size_of(facts.size)} ({facts.size} bytes)"]
        if facts.kind == "folder":
            entries = await asyncio.to_thread(lambda: list(self._files.workspace.entries(where)))
            lines = [f"{where}: folder, {len(entries)} entries"]
        elif facts.kind == "file" and facts.size <= self._files.config.max_read_bytes:
            lines.append(_of_content(await self._files.read(where)))
        changed = datetime.fromtimestamp(facts.modified_at)
        lines.append(f"changed {changed:%Y-%m-%d %H:%M:%S}, permissions {_permissions(facts)}")
        taint = await self._files.taint_of([str(where)])
        return ToolOutput("\n".join(lines), tainted=taint.tainted, folder=taint.folder)


def _of_content(content: bytes) -> str:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return "no UTF-8 text"
    ends = "CRLF" if "\r\n" in text else "LF"
    return f"{len(text.splitlines())} lines, {len(text)} characters of UTF-8 text, line ends {ends}"


def _permissions(facts: FileFacts) -> str:
    return f"{facts.mode:o}"


# The tool that reads a file: small ones whole, of large ones first their outline, then any part.

OUTLINE_SHARE = 8  # an outline has at most the eighth part of a file's characters,
LEAST_OUTLINE, MOST_OUTLINE = 1500, 8000  # within these
MOST_NAMED = 5


class ReadFileTool(FileTool):
    """Read a file of the workspace. A small one comes whole. Of a large one come first its headings, symbols, keys or
    columns with their lines: then read the part that is needed, by its name or by its lines."""

    name = "read_file"
    safety = "L0"
    category = "read"
    replaces = "cat, head, tail, sed -n"

    async def run(
        self,
        path: Annotated[str, "The file, from the workspace on"],
        part: Annotated[str, "A heading, symbol or key of the file to read; empty for none"] = "",
        start: Annotated[int, Field(ge=0, description="The first line to read; 0 for none")] = 0,
        end: Annotated[int, Field(ge=0, description="The last line to read; 0 for the end")] = 0,
    ) -> ToolOutput:
        """The text, or what the file is made of."""
        where = self._files.path(self, path)
        content = await self._files.read(where)
        config, digest = self._files.config, hashlib.sha256(content).hexdigest()
        taint = await self._files.taint_of([str(where)], [digest])
        try:
            outline = await asyncio.to_thread(file_outline, str(where), content)
            text = outline_text(
                where, outline, part, (start, end), len(content), config.whole_file_chars, config.max_part_chars
            )
        except ToolError as error:  # it may repeat content of a PDF
            raise ToolError(str(error), kind=error.kind, tainted=taint.tainted, folder=taint.folder) from None
        return ToolOutput(text, tainted=taint.tainted, folder=taint.folder)


def outline_text(
    path: WorkspacePath,
    outline: Outline,
    part: str,
    lines: tuple[int, int],
    size: int,
    whole_chars: int,
    part_chars: int,
) -> str:
    """Return the text for the model of a file that has `size` bytes; `lines` are the first and the last one that are
    wanted. Raises `ToolError` (no_such_part, bad_argument).
    """
    chars = sum(len(line) + 1 for line in outline.lines)
    heading = f"{path}: {outline.kind}, {len(outline.lines)} lines, {size_of(size)}"
    if part:
        return _named_part(path, outline, part, heading, part_chars)
    if any(lines):
        return f"{heading}\n{_lines(outline, *lines, part_chars)}"
    if chars <= whole_chars and outline.lines:
        return f"{heading}\n" + "\n".join(outline.lines)
    budget = min(max(LEAST_OUTLINE, chars // OUTLINE_SHARE), MOST_OUTLINE)
    how = "\n(Read a part by its name, or by its lines with start and end.)" if outline.lines else ""
    return f"{heading}\n{outline.as_text(budget)}{how}"


def _named_part(path: WorkspacePath, outline: Outline, part: str, heading: str, most_chars: int) -> str:
    found = outline.named(part)
    if not found:
        text = f"{path} has no part that is called {shown(part)}; read it without, for the parts that it has"
        raise ToolError(text, kind="no_such_part")
    others = [f"{each.start}-{each.end} {each.title}" for each in found[1 : MOST_NAMED + 1]]
    also = f"\n(Others of that name: {'; '.join(others)})" if others else ""
    first: FilePart = found[0]
    return f"{heading}\n{_lines(outline, first.start, first.end, most_chars)}{also}"


def _lines(outline: Outline, start: int, end: int, most_chars: int) -> str:
    """The lines from `start` to `end`, as many of them as have room."""
    last = len(outline.lines)
    first, wanted = max(1, start), min(end or last, last)
    if first > last or wanted < first:
        raise ToolError(f"there are {last} lines, and {start} to {end} are outside of them", kind="bad_argument")
    taken, room = list[str](), most_chars
    for line in outline.lines[first - 1 : wanted]:
        room -= len(line) + 1
        if room < 0:
            break
        taken.append(line)
    if not taken:
        return f"line {first}, its first {most_chars} characters:\n{outline.lines[first - 1][:most_chars]}"
    until = first + len(taken) - 1
    more = f"\n(Cut off here; go on with start={until + 1}.)" if until < wanted else ""
    return f"lines {first} to {until}:\n" + "\n".join(taken) + more


# The tool that makes a file, or replaces one.


class WriteFileTool(ChangingFileTool):
    """Write a whole text file in the workspace. It is a new one, with the folders on the way to it, or takes the place
    of what is there. To change parts of a file, use edit_file. The user can undo it."""

    name = "write_file"
    replaces = "tee, echo with >"

    async def run(
        self,
        path: Annotated[str, "The file, from the workspace on, such as src/todo.py"],
        content: Annotated[str, "All that the file is to hold"],
    ) -> ToolOutput:
        """How the file has changed, as a diff."""
        where = self._files.path_to_change(self, path)
        digest = await asyncio.to_thread(self._files.workspace.digest, where)
        before = None if digest is None else await self._files.read(where)
        after = content.encode("utf-8", "replace")
        lines = len(content.splitlines())
        if before == after:
            return ToolOutput(f"{where} holds exactly that already ({lines} lines); nothing was written.")
        taint = FileTaint() if digest is None else await self._files.taint_of([str(where)], [digest])
        await self._files.write(self, where, after, before, keeps_taint=False)
        if before is None:
            return ToolOutput(f"{where} is new: {lines} lines, {len(after)} bytes.", undoable=True)
        diff = text_diff(str(where), before, after)
        text = f"{where} was replaced: {lines} lines.\n{diff}"
        return ToolOutput(text, undoable=True, tainted=taint.tainted, folder=taint.folder)

"""What the tools for files share: the workspace, its limits, and for whom and for which call it is used."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from pydantic import Field

from local.config import Settings
from local.errors import ConfigError, ToolError
from local.services.workspace.change_store import FileChange
from local.services.workspace.clone_search import CloneSearch
from local.services.workspace.editor import ChangeCause, WorkspaceEditor
from local.services.workspace.workspace import Workspace
from local.services.workspace.workspace_path import WorkspacePath, folded, shown
from local.tools.owner_only import require_owner
from local.tools.tool import Tool
from local.trust.trust_registry import TrustRegistry


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
    strange_clones: bool = True
    keep_days: float = Field(30, gt=0)
    keep_megabytes: float = Field(500, gt=0)
    keep_file_megabytes: float = Field(50, gt=0)


class WorkspaceFiles:
    """`editor` is open for as long as the tools are served; `trust` knows which folders the owner trusts."""

    def __init__(self, config: FilesConfig, editor: WorkspaceEditor, trust: TrustRegistry | None = None) -> None:
        self.config, self.editor, self._trust = config, editor, trust

    @property
    def workspace(self) -> Workspace:
        """Where the files are."""
        return self.editor.workspace

    def path(self, tool: Tool, text: str) -> WorkspacePath:
        """A path to look at. Raises `ToolError`: not_yours for anybody but the owner; outside, bad_path."""
        require_owner(tool.asked_by())
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

    async def holds_strangers_words(self, paths: Iterable[str], digests: Collection[str] = ()) -> bool:
        """Whether what stands in one of those files, or in their names, may be a stranger's. `digests` are the SHA-256
        of what they hold: a copy of a stranger's file is one, too."""
        named, patterns = list(paths), [folded(pattern) for pattern in self.config.strangers]
        if any(fnmatchcase(folded(path), pattern) for path in named for pattern in patterns):
            return True
        if self.config.strange_clones and await asyncio.to_thread(self._are_in_strange_clone, named):
            return True
        return await self.editor.is_tainted(named, digests)

    def _are_in_strange_clone(self, paths: Iterable[str]) -> bool:
        clones = CloneSearch(self.workspace).of(paths)
        try:
            return any(self._trust is None or not self._trust.trusted(clone) for clone in clones)
        except ConfigError:  # nobody can tell
            return True


def cause_of(tool: Tool) -> ChangeCause:
    """The call that a tool is running. Raises `LookupError` outside of one."""
    request = tool.request()
    session_id = tool.asked_by().session_id or request.query_id
    return ChangeCause(tool.name, request.call_id, request.query_id, session_id, request.tainted)


def text_of(path: WorkspacePath, content: bytes) -> str:
    """What a text file says, with its line ends as they are. Raises `ToolError` (not_text)."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        why = f"{shown(str(path))} is no UTF-8 text (byte {error.start}), so it cannot be edited in parts"
        raise ToolError(why, kind="not_text") from None

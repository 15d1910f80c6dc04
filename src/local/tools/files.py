"""The tools for files of the workspace, in one process, and what doors ask of the changes that they have made."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from local.errors import LocalError
from local.protocol.change_messages import ChangedFile, ChangeRequest, ChangeResult, EffectUndone
from local.protocol.envelope import Envelope
from local.protocol.memory_messages import OWNER, MemoryDeleted
from local.protocol.messages import ErrorInfo, Message, SessionDeleted
from local.runtime.participant import Resources, on
from local.services.workspace.change_store import ChangeSelection, ChangeStore, FileChange
from local.services.workspace.content_store import ContentStore
from local.services.workspace.editor import Retention, WorkspaceEditor
from local.services.workspace.text_diff import text_diff
from local.services.workspace.workspace import Workspace
from local.tools.file_tools.delete_file_tool import DeleteFileTool
from local.tools.file_tools.edit_file_tool import EditFileTool
from local.tools.file_tools.file_stats_tool import FileStatsTool
from local.tools.file_tools.list_files_tool import ListFilesTool
from local.tools.file_tools.read_file_tool import ReadFileTool
from local.tools.file_tools.workspace_files import FilesConfig, WorkspaceFiles
from local.tools.file_tools.write_file_tool import WriteFileTool
from local.tools.tool import Tool
from local.tools.tool_group import ToolGroup

MEGABYTE = 1_000_000


class FileTools(ToolGroup):
    """Reads, lists, writes, edits and deletes files of the workspace, and undoes that."""

    name = "files"
    Config = FilesConfig
    publishes = (EffectUndone,)
    tools = (ReadFileTool, ListFilesTool, FileStatsTool, WriteFileTool, EditFileTool, DeleteFileTool)

    def __init__(self, config: FilesConfig, tools: Sequence[Tool], editor: WorkspaceEditor) -> None:
        super().__init__(config, tools)
        self._editor = editor

    @classmethod
    def build(cls, config: FilesConfig, resources: Resources) -> FileTools:
        """With the workspace, and what is kept of its files in the data directory."""
        files = WorkspaceFiles(config, editor_of(config, resources))
        tools: list[Tool] = [tool(config, files) for tool in cls.tools]
        return cls(config, [tool.with_record(resources) for tool in tools], files.editor)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Hold the record of changes."""
        async with self._editor.opened(), super().lifespan():
            yield

    @on(ChangeRequest)
    async def answer(self, request: ChangeRequest, envelope: Envelope) -> ChangeResult:
        """A door asks for changes, or to undo some."""
        root = str(self._editor.workspace.root)
        if envelope.user_id not in (None, OWNER):
            error = ErrorInfo(kind="not_yours", message="the workspace belongs to the owner of this LoCAL2")
            return ChangeResult(verb=request.verb, error=error)
        try:
            return ChangeResult(verb=request.verb, workspace=root, changes=await self._changes(request))
        except LocalError as failure:
            error = ErrorInfo(kind=failure.kind, message=str(failure))
            return ChangeResult(verb=request.verb, workspace=root, error=error)

    async def forget_session(self, deleted: SessionDeleted, envelope: Envelope) -> None:
        """Nobody is to keep anything of a session: what it has changed cannot be undone any more."""
        await super().forget_session(deleted, envelope)
        await self._editor.forget(session_id=deleted.deleted_session_id)

    async def forget_query(self, deleted: MemoryDeleted, envelope: Envelope) -> None:
        """What one query has changed cannot be undone any more."""
        await super().forget_query(deleted, envelope)
        await self._editor.forget(query_id=deleted.query_id)

    def error_reply(self, message: Message, error: Exception) -> Message | None:
        """To a door, too."""
        if isinstance(message, ChangeRequest):
            return ChangeResult(verb=message.verb, error=ErrorInfo(kind="internal", message=str(error)))
        return super().error_reply(message, error)

    def details(self) -> dict[str, str]:
        """Which folder that is."""
        return {"workspace": str(self._editor.workspace.root)}

    async def _changes(self, request: ChangeRequest) -> tuple[ChangedFile, ...]:
        selection = ChangeSelection(request.call_id, request.query_id, request.since, request.until, request.limit)
        if request.verb != "undo":
            found = await self._editor.changes.select(selection)
            return await self._told(found, with_diffs=request.verb == "show")
        undone = await self._editor.undo(selection)
        calls = tuple(dict.fromkeys(change.call_id for change in undone))
        paths = tuple(dict.fromkeys(change.path for change in undone))
        await self.bus.publish(EffectUndone(call_ids=calls, paths=paths))
        return await self._told(undone, with_diffs=True, undone=True)

    async def _told(
        self, changes: Sequence[FileChange], *, with_diffs: bool, undone: bool = False
    ) -> tuple[ChangedFile, ...]:
        diffs = [await asyncio.to_thread(self._diff, change) if with_diffs else "" for change in changes]
        pairs = zip(changes, diffs, strict=True)
        return tuple(_told(change, diff, undone=undone or change.state == "undone") for change, diff in pairs)

    def _diff(self, change: FileChange) -> str:
        try:
            return text_diff(change.path, *self._editor.texts(change))
        except LocalError as failure:
            return f"{change.path}: {failure}"


def editor_of(config: FilesConfig, resources: Resources) -> WorkspaceEditor:
    """Changes files of the workspace; what it takes to undo that is kept in the data directory."""
    folder = resources.data_dir / "changes"
    retention = Retention(config.keep_days, int(config.keep_megabytes * MEGABYTE))
    contents = ContentStore(folder / "contents", int(config.keep_file_megabytes * MEGABYTE))
    return WorkspaceEditor(
        Workspace(resources.workspace_folder), ChangeStore(folder / "changes.db"), contents, retention
    )


def _told(change: FileChange, diff: str, *, undone: bool) -> ChangedFile:
    what: Any = "made" if change.before is None else "deleted" if change.after is None else "changed"
    fields = {name: getattr(change, name) for name in ("path", "tool", "call_id", "query_id", "session_id", "at")}
    return ChangedFile(what=what, undone=undone, diff=diff, **fields)

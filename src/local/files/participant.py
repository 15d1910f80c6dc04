"""The tools for files of the workspace, its programs and its repository, in one process, and what frontends ask
about the changes that they have made.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from local.bus.envelope import Envelope
from local.bus.message import ErrorInfo, Message
from local.bus.messages import SessionDeleted, ToolRequest
from local.core.capability import extension
from local.core.errors import ConfigError, LocalError
from local.core.trust import TrustRegistry
from local.core.workspace import Workspace
from local.files.code import AstQueryTool, CodeRunner, FindSymbolTool, GetStructureTool, SearchCodeTool
from local.files.edits import (
    ChangeSelection,
    ChangeStore,
    ContentStore,
    FileChange,
    Retention,
    WorkspaceEditor,
    text_diff,
)
from local.files.git import GET_IT, GitProgram, GitRepository
from local.files.git_tools import GitCommitTool, GitDiffTool, GitLogTool, GitStatusTool
from local.files.messages import ChangedFile, ChangeRequest, ChangeResult, EffectUndone
from local.files.tools import (
    DeleteFileTool,
    EditFileTool,
    FilesConfig,
    FileStatsTool,
    ListFilesTool,
    ReadFileTool,
    WorkspaceContents,
    WorkspaceFiles,
    WriteFileTool,
)
from local.memory.messages import OWNER, MemoryDeleted
from local.runtime.participant import Resources, on
from local.skills.messages import READ_SKILL, SkillRequest, SkillResult, SkillsChanged
from local.tools.group import ToolGroup
from local.tools.tool import Tool

log = logging.getLogger(__name__)

MEGABYTE = 1_000_000
OF_FILES = (ReadFileTool, ListFilesTool, FileStatsTool, WriteFileTool, EditFileTool, DeleteFileTool)
OF_CODE = (SearchCodeTool, FindSymbolTool, GetStructureTool, AstQueryTool)
OF_GIT = (GitStatusTool, GitDiffTool, GitLogTool, GitCommitTool)
SKILLS = extension("files")  # answers for the skills, and has the tool that reads them
OFFERED_FOR: Mapping[str, tuple[type[Tool], ...]] = {
    "programs": (FindSymbolTool, GetStructureTool, AstQueryTool),
    "repository": OF_GIT,
}


class FileTools(ToolGroup):
    """Reads, searches, writes, edits, deletes and commits files of the workspace, and undoes that; and reads skills.
    Tools for programs are offered as soon as there are programs, for a repository and for skills in the same way."""

    name = "files"
    Config = FilesConfig
    publishes = (EffectUndone, *([SKILLS] if SKILLS else []))
    tools = (*OF_FILES, *OF_CODE, *OF_GIT, *(SKILLS.tools if SKILLS else ()))

    def __init__(self, config: FilesConfig, tools: Sequence[Tool], editor: WorkspaceEditor, skills: Any = None) -> None:
        """`skills` are an instance of `SKILLS`, which answers for the skills; None without that capability."""
        super().__init__(config, tools)
        self._editor, self._skills = editor, skills
        self._contents = WorkspaceContents(editor.workspace)
        self._looking = asyncio.Lock()
        self._tasks: asyncio.TaskGroup

    @classmethod
    def build(cls, config: FilesConfig, resources: Resources) -> FileTools:
        """Build it with the workspace, and the stored file contents in the data directory."""
        trust = TrustRegistry(resources.layers[-1]) if resources.layers else None
        files = WorkspaceFiles(config, editor_of(config, resources), trust)
        runner = CodeRunner()
        closed = (resources.data_dir, *resources.layers[1:])
        repository = GitRepository(files.workspace, GitProgram(files.workspace.root, closed))
        tools: list[Tool] = [tool(config, files) for tool in OF_FILES]
        tools += [tool(config, files, runner) for tool in OF_CODE]
        tools += [tool(config, files, repository) for tool in OF_GIT]
        skills = None
        if SKILLS:
            is_trusted = partial(_is_trusted, trust, resources.workspace_folder)
            skills = SKILLS.build(config.skill_folders, resources, is_trusted)
            tools += [tool(config, skills.library) for tool in SKILLS.tools]
        return cls(config, tools, files.editor, skills).with_records(resources)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Hold the record of changes, and watch the skills."""
        async with self._editor.opened(), super().lifespan(), asyncio.TaskGroup() as self._tasks:
            watching = self._tasks.create_task(self._skills.watch(self._publish_skills)) if self._skills else None
            try:
                yield
            finally:
                if watching:
                    watching.cancel()

    def offered(self) -> Iterable[Tool]:
        """The tools that there is something for."""
        kinds = self._contents.kinds
        idle = {tool.name for kind, tools in OFFERED_FOR.items() if kind not in kinds for tool in tools}
        idle |= set() if self._skills and self._skills.has_any else {READ_SKILL}
        return [tool for name, tool in self._tools.items() if name not in idle]

    async def announce(self) -> None:
        """Announce the tools as any group does, after a look at the workspace."""
        await asyncio.to_thread(self._contents.look)
        changed = await self._skills.look() if self._skills else None
        await super().announce()
        if changed is not None:
            await self.bus.publish(changed)

    async def call(self, request: ToolRequest, envelope: Envelope) -> Message | None:
        """Call one of the tools, then look for new content in the background."""
        result = await super().call(request, envelope)
        if not self._contents.is_complete():
            self._tasks.create_task(self._look_again())
        return result

    @on(ChangeRequest)
    async def answer(self, request: ChangeRequest, envelope: Envelope) -> ChangeResult:
        """A frontend asks for changes, or to undo some."""
        root = str(self._editor.workspace.root)
        if envelope.user_id not in (None, OWNER):
            error = ErrorInfo(kind="not_yours", message="the workspace belongs to the owner of this LoCAL2")
            return ChangeResult(verb=request.verb, error=error)
        try:
            return ChangeResult(verb=request.verb, workspace=root, changes=await self._changes(request))
        except LocalError as failure:
            error = ErrorInfo.of(failure)
            return ChangeResult(verb=request.verb, workspace=root, error=error)

    @on(SkillRequest)
    async def answer_about_skills(self, request: SkillRequest, envelope: Envelope) -> SkillResult:
        """A respondent or a frontend asks which skills there are."""
        if self._skills is None:
            return SkillResult(
                verb=request.verb, error=ErrorInfo(kind="unavailable", message="there are no skills here")
            )
        answer: SkillResult = await self._skills.answer(request)
        return answer

    async def forget_session(self, deleted: SessionDeleted, envelope: Envelope) -> None:
        """Delete the stored contents of a deleted session: its changes cannot be undone any more."""
        await super().forget_session(deleted, envelope)
        await self._editor.forget(session_id=deleted.deleted_session_id)

    async def forget_query(self, deleted: MemoryDeleted, envelope: Envelope) -> None:
        """Delete the stored contents of one query: its changes cannot be undone any more."""
        await super().forget_query(deleted, envelope)
        await self._editor.forget(query_id=deleted.query_id)

    def error_reply(self, message: Message, error: Exception) -> Message | None:
        """The error that a model or a frontend receives."""
        if isinstance(message, ChangeRequest):
            return ChangeResult(verb=message.verb, error=ErrorInfo(kind="internal", message=str(error)))
        return super().error_reply(message, error)

    def details(self) -> dict[str, str]:
        """Return the workspace's folder, and why its repository cannot be used, if so."""
        off = {} if GitProgram.installed() else {"git": f"off: {GET_IT}"}
        return {"workspace": str(self._editor.workspace.root), **off}

    async def _publish_skills(self, changed: SkillsChanged) -> None:
        await super().announce()  # the tool for them may be needed now
        await self.bus.publish(changed)

    async def _look_again(self) -> None:
        try:
            async with self._looking:
                if await asyncio.to_thread(self._contents.look):
                    await super().announce()
        except LocalError as error:  # a request for schemas reports it
            log.warning("what else there is in the workspace could not be told: %s", error)

    async def _changes(self, request: ChangeRequest) -> tuple[ChangedFile, ...]:
        selection = ChangeSelection(request.call_id, request.query_id, request.since, request.until, request.limit)
        if request.verb != "undo":
            found = await self._editor.changes.select(selection)
            return await self._changed_files(found, with_diffs=request.verb == "show")
        undone = await self._editor.undo(selection)
        calls = tuple(dict.fromkeys(change.call_id for change in undone))
        paths = tuple(dict.fromkeys(change.path for change in undone))
        await self.bus.publish(EffectUndone(call_ids=calls, paths=paths))
        return await self._changed_files(undone, with_diffs=True, undone=True)

    async def _changed_files(
        self, changes: Sequence[FileChange], *, with_diffs: bool, undone: bool = False
    ) -> tuple[ChangedFile, ...]:
        diffs = [await asyncio.to_thread(self._diff, change) if with_diffs else "" for change in changes]
        pairs = zip(changes, diffs, strict=True)
        return tuple(_changed_file(change, diff, undone=undone or change.state == "undone") for change, diff in pairs)

    def _diff(self, change: FileChange) -> str:
        try:
            return text_diff(change.path, *self._editor.texts(change))
        except LocalError as failure:
            return f"{change.path}: {failure}"


def editor_of(config: FilesConfig, resources: Resources) -> WorkspaceEditor:
    """Return the editor of the workspace's files; the data to undo changes is in the data directory."""
    folder = resources.data_dir / "changes"
    retention = Retention(config.keep_days, int(config.keep_megabytes * MEGABYTE))
    contents = ContentStore(folder / "contents", int(config.keep_file_megabytes * MEGABYTE))
    return WorkspaceEditor(
        Workspace(resources.workspace_folder), ChangeStore(folder / "changes.db"), contents, retention
    )


def _changed_file(change: FileChange, diff: str, *, undone: bool) -> ChangedFile:
    what: Any = "made" if change.before is None else "deleted" if change.after is None else "changed"
    fields = {name: getattr(change, name) for name in ("path", "tool", "call_id", "query_id", "session_id", "at")}
    return ChangedFile(what=what, undone=undone, diff=diff, **fields)


def _is_trusted(trust: TrustRegistry | None, folder: Path) -> bool:
    try:
        return trust is not None and trust.trusted(folder)
    except ConfigError:
        return False

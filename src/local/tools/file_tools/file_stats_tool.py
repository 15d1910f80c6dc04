"""The tool that tells what is known of a file without reading it out."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Annotated

from local.services.workspace.workspace import FileFacts
from local.tools.file_tools.file_tool import FileTool
from local.tools.file_tools.list_files_tool import size_of
from local.tools.tool import ToolOutput


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
        return ToolOutput("\n".join(lines), tainted=await self._files.holds_strangers_words([str(where)]))


def _of_content(content: bytes) -> str:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return "no UTF-8 text"
    ends = "CRLF" if "\r\n" in text else "LF"
    return f"{len(text.splitlines())} lines, {len(text)} characters of UTF-8 text, line ends {ends}"


def _permissions(facts: FileFacts) -> str:
    return f"{facts.mode:o}"

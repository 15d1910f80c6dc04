"""The tool that tells what differs from the last commit."""

from __future__ import annotations

from local.tools.git_tools.git_tool import GitTool
from local.tools.tool import ToolOutput


class GitStatusTool(GitTool):
    """Tell the branch and the changed files of the git repository."""

    name = "git_status"
    replaces = "git status"
    safety = "L0"

    async def run(self) -> ToolOutput:
        """The branch, and a line for each file, with git's two letters."""
        self.paths(".")
        branch = await self._repository.branch()
        entries = await self._repository.status()
        most = self._files.config.max_list_entries
        lines = [f"{entry.letters} {entry.path}" for entry in entries[:most]]
        if len(entries) > most:
            lines.append(f"… and {len(entries) - most} more")
        heading = f"on {branch}: {len(entries)} files differ from the last commit" if entries else f"on {branch}: clean"
        tainted = await self._files.holds_strangers_words(entry.path for entry in entries)
        return self.told("\n".join([heading, *lines]), tainted=tainted)

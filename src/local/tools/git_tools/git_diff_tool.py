"""The tool that tells how files differ."""

from __future__ import annotations

from typing import Annotated

from local.tools.git_tools.git_tool import GitTool
from local.tools.tool import ToolOutput


class GitDiffTool(GitTool):
    """Show what has changed since the last commit, or in a commit."""

    name = "git_diff"
    replaces = "git diff, git show"
    safety = "L0"

    async def run(
        self,
        path: Annotated[str, "The file or folder"] = ".",
        commit: Annotated[str, "What this commit changed; a..b compares two"] = "",
        staged: bool = False,
    ) -> ToolOutput:
        """The changes as a diff. Files that git does not know yet are named."""
        paths = self.paths(path)
        text = await self._repository.diff(paths, staged=staged, revision=commit)
        if commit:  # whoever may have made it
            return self.told(text or "no difference", tainted=True)
        entries = await self._repository.status(paths)
        unknown = [entry.path for entry in entries if entry.letters == "??"]
        if unknown and not staged:
            text += f"\nnot known to git yet: {', '.join(unknown[:50])}{', …' if len(unknown) > 50 else ''}"
        tainted = await self.holds_strangers_words([entry.path for entry in entries])
        return self.told(text.lstrip("\n") or "no difference", tainted=tainted)

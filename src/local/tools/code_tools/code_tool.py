"""What each tool for programs is."""

from __future__ import annotations

from local.services.code.code_job import CodeJob, CodeLimits, Verb
from local.services.code.code_runner import KILL_AFTER, CodeRunner
from local.tools.file_tools.file_tool import FileTool
from local.tools.file_tools.workspace_files import FilesConfig, WorkspaceFiles
from local.tools.tool import ToolOutput

SLACK_SECONDS = 10.0  # for waiting until others are through


class CodeTool(FileTool):
    """A tool that looks through many files, in a process that is ended with the call."""

    safety = "L0"
    category = "search"

    def __init__(self, config: FilesConfig, files: WorkspaceFiles, runner: CodeRunner) -> None:
        super().__init__(config, files)
        self._runner = runner
        self.max_result_chars = config.max_part_chars
        self.timeout_seconds = config.search_seconds + KILL_AFTER + SLACK_SECONDS

    async def found(
        self, verb: Verb, wanted: str, path: str, *, pattern: str = "", ignore_case: bool = False
    ) -> ToolOutput:
        """What there is below a path, and whether a stranger's words are in it."""
        config = self._files.config
        limits = CodeLimits(
            config.max_read_bytes, config.max_symbol_files, config.max_search_hits, config.search_seconds
        )
        where, root = self._files.path(self, path), str(self._files.workspace.root)
        job = CodeJob(verb, root, where.parts, limits, wanted, pattern, ignore_case)
        findings = await self._runner.findings(job)
        tainted = await self._files.holds_strangers_words(findings.digests, set(findings.digests.values()))
        return self.told(findings.text, tainted=tainted)

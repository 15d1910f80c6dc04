"""The tool that runs one command."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from local.errors import ToolError
from local.services.sandbox.launch import ContainedCommand
from local.tools.commands.command_tool import CommandTool
from local.tools.commands.shell_job import shown
from local.tools.tool import ToolOutput

SHELL = ("/bin/bash", "-c")


class ShellExecTool(CommandTool):
    """Run a command in the workspace and read its exit code and output. It sees the workspace and the system's
    programs, no network and nothing else; /tmp is empty each time. Its standard input is empty."""

    name = "shell_exec"

    async def run(
        self,
        command: Annotated[
            str | list[str], "A command line for bash; or a list, the program and its arguments, which no shell reads"
        ],
        folder: Annotated[str, "Where to run it, counted from the workspace"] = ".",
        background: Annotated[
            bool, Field(description="Do not wait for its end: for servers, and for what takes longer than two minutes")
        ] = False,
    ) -> ToolOutput:
        """How the command ended and what it has written."""
        argv = tuple(command) if isinstance(command, list) else (*SHELL, command)
        if not argv or not argv[0] or (isinstance(command, str) and not command.strip()):
            raise ToolError(
                "command is empty; expected a command line, or a program and its arguments", kind="bad_arguments"
            )
        line = command if isinstance(command, str) else shown(argv)
        return await self.carried_out(ContainedCommand(argv, self._jobs.folder(folder)), line, background)

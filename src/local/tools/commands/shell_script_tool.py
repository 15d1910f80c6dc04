"""The tool that runs a script."""

from __future__ import annotations

from typing import Annotated

from local.errors import ToolError
from local.services.sandbox.launch import ContainedCommand
from local.tools.commands.command_tool import CommandTool
from local.tools.tool import ToolOutput


class ShellScriptTool(CommandTool):
    """Run a script of several lines in the workspace, as shell_exec runs a command; it is not kept as a file."""

    name = "shell_script"

    async def run(
        self,
        script: Annotated[str, "The text of the script"],
        interpreter: Annotated[str, "The program that reads it, such as bash, sh, python3, node or perl"] = "bash",
        arguments: Annotated[list[str], "What the script is given"] = [],  # noqa: B006 - it is never changed
        folder: Annotated[str, "Where to run it, counted from the workspace"] = ".",
        background: Annotated[bool, "Do not wait for its end"] = False,
    ) -> ToolOutput:
        """How the script ended and what it has written."""
        if not script.strip():
            raise ToolError("script is empty; expected the text of a script", kind="bad_arguments")
        if not interpreter or interpreter.startswith("-"):
            raise ToolError(f"interpreter is {interpreter!r}; expected a program", kind="bad_arguments")
        text = script.encode("utf-8", "surrogateescape")
        command = ContainedCommand((interpreter,), self._jobs.folder(folder), text, tuple(arguments))
        return await self.carried_out(command, f"{interpreter}: {script}", background)

"""Looks through programs in a process that can be killed: no pattern and no file holds up anybody else."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from dataclasses import asdict

from local.errors import ToolError
from local.services.code.code_job import CodeFindings, CodeJob

AT_ONCE = 2
KILL_AFTER = 5.0  # seconds beyond those of the job, which looks at the clock itself between two files
COMMAND = (sys.executable, "-I", "-m", "local.services.code.code_worker")


class CodeRunner:
    """At most two at a time; each does one job and ends. A call that is cancelled kills its own."""

    def __init__(self, command: tuple[str, ...] = COMMAND, kill_after: float = KILL_AFTER) -> None:
        self._command, self._kill_after = command, kill_after
        self._places = asyncio.Semaphore(AT_ONCE)

    async def findings(self, job: CodeJob) -> CodeFindings:
        """What a job asks for. Raises `ToolError`: bad_pattern, bad_query, not_code, too_slow, and what `Workspace`
        raises."""
        async with self._places:
            process = await asyncio.create_subprocess_exec(
                *self._command, cwd="/", env={"LANG": "C.UTF-8"},
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
            try:
                async with asyncio.timeout(job.limits.seconds + self._kill_after):
                    said, troubles = await process.communicate(json.dumps(asdict(job)).encode())
            except TimeoutError:
                text = (
                    f"it took longer than {job.limits.seconds:g} s on one file and was ended: such a pattern tries too"
                    " many ways, as nested repetitions do; give a simpler one"
                )
                raise ToolError(text, kind="too_slow") from None
            finally:
                if process.returncode is None:
                    with suppress(ProcessLookupError):
                        process.kill()
                    await asyncio.shield(process.wait())
        return _told(said, troubles, process.returncode)


def _told(said: bytes, troubles: bytes, code: int | None) -> CodeFindings:
    try:
        answer = json.loads(said)
    except ValueError:
        last = troubles.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise ToolError(f"the search ended with {code}: {''.join(last)[:500]}", kind="failed") from None
    if "error" in answer:
        raise ToolError(answer["error"], kind=answer["kind"])
    return CodeFindings(**answer)

"""The process that looks through programs: one job on its standard input, the findings on its standard output."""

from __future__ import annotations

import json
import resource
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from local.core.errors import ToolError
from local.core.workspace import Workspace, WorkspacePath
from local.files.code import CodeFiles, CodeFindings, CodeJob

SLACK_SECONDS = 15  # of processor time beyond a job's own: the parent may have died
MEMORY_BYTES = 1024**3


def findings(job: CodeJob) -> CodeFindings:
    """Return the result of a job. Raises `ToolError`."""
    from local.files.code import LineSearch, SymbolSearch, SyntaxSearch
    from local.files.outlines import is_code

    limits = job.limits
    files = CodeFiles(Workspace(Path(job.root)), WorkspacePath(job.path), limits.file_bytes, job.pattern)
    if job.verb == "text":
        return CodeFindings(
            LineSearch(job.wanted, job.ignore_case, limits.hits, limits.seconds).as_text(files), files.digests
        )
    files.wanted = is_code
    if job.path and files.workspace.facts(files.path).kind == "file" and not is_code(job.path[-1]):
        raise ToolError(
            f"{files.path} is in no language whose symbols can be listed; read_file reads it", kind="not_code"
        )
    if job.verb == "syntax":
        text = SyntaxSearch(job.wanted, limits.hits, limits.seconds).as_text(files)
    else:
        search = SymbolSearch(limits.files, limits.seconds)
        text = search.definitions(job.wanted, files) if job.verb == "definitions" else search.structure(files)
    return CodeFindings(text, files.digests)


def answer(asked: str) -> str:
    """The findings of a job, or the error, as JSON."""
    try:
        return json.dumps(asdict(findings(CodeJob.of(json.loads(asked)))))
    except ToolError as error:
        return json.dumps({"error": str(error), "kind": error.kind})


def main() -> None:
    """Do one job."""
    asked = sys.stdin.buffer.read().decode()
    seconds = int(json.loads(asked)["limits"]["seconds"]) + SLACK_SECONDS
    for kind, value in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_DATA, MEMORY_BYTES)):
        with suppress(OSError, ValueError):
            resource.setrlimit(kind, (value, value))
    sys.stdout.buffer.write(answer(asked).encode("utf-8", "replace"))


if __name__ == "__main__":
    main()

"""Commands as the model runs them, in the sandbox of this machine."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from local.bus.blobs import BlobStore
from local.bus.envelope import Envelope, Trace
from local.bus.messages import SessionDeleted, ToolJob, ToolProgress, ToolRequest, ToolResult
from local.core.errors import SandboxMissing
from local.runtime.participant import Participant, Resources, Settingless, on
from local.sandbox.sandbox import Bubblewrap
from local.shell import shell
from local.shell.shell import Shell, ShellConfig
from local.skills.messages import SkillRecord, SkillRequest, SkillResult, SkillsChanged

Serve = Callable[..., Awaitable[Any]]
SECONDS = 90.0


@pytest.fixture
async def call(serve: Serve, tmp_path: Path) -> Any:
    if (problem := shell.sandbox_problem()) and not os.environ.get("CI"):
        pytest.skip(str(problem))
    config = ShellConfig(timeout_seconds=30, jobs_at_once=1)
    return await serve(Shell.build(config, Resources(data_dir=tmp_path)), BlobStore(tmp_path / "blobs"))


async def test_a_command_line_and_an_argument_vector_are_run_in_the_workspace(call: Any, tmp_path: Path) -> None:
    line = await call.call({"command": "echo one; echo two >&2; touch made; exit 3"}, "q1:0:0", tool="shell_exec")
    assert line.result.startswith("exit code 3 after ") and line.result.endswith("\n\none\ntwo\n")
    assert (tmp_path / "workspace" / "made").exists()
    vector = await call.call({"command": ["printf", "%s", "$HOME; a|b"]}, "q1:0:1", tool="shell_exec")
    assert vector.result.endswith("\n\n$HOME; a|b")
    nothing = await call.call({"command": ["true"]}, "q1:0:2", tool="shell_exec")
    assert nothing.result.endswith("(no output)")


async def test_a_script_is_given_its_arguments_and_is_no_file_of_the_workspace(call: Any, tmp_path: Path) -> None:
    args = {"script": "import os, sys\nprint(sys.argv[1:], os.listdir())", "interpreter": "python3", "arguments": ["ä"]}
    assert (await call.call(args, "q1:0:0", tool="shell_script")).result.endswith("\n\n['ä'] []\n")


async def test_what_cannot_be_run_is_refused_with_the_reason(call: Any) -> None:
    calls: list[tuple[str, dict[str, Any], str]] = [
        ("shell_exec", {"command": ""}, "command is empty"),
        ("shell_exec", {"command": []}, "command is empty"),
        ("shell_exec", {"command": ["echo", "a\0b"]}, "embedded null byte"),
        ("shell_exec", {"command": ["echo", "x" * 200_000]}, "put them into a file"),
        ("shell_exec", {"command": "ls", "folder": "../.."}, "expected one in the workspace"),
        ("shell_exec", {"command": "ls", "folder": "nowhere"}, "nowhere"),
        ("shell_script", {"script": " "}, "script is empty"),
        ("shell_script", {"script": "ls", "interpreter": "--help"}, "expected a program"),
        ("shell_output", {"job": "job-9"}, "there are: none"),
        ("shell_stop", {"job": "job-9"}, "there are: none"),
    ]
    for number, (tool, args, says) in enumerate(calls):
        result = await call.call(args, f"q1:{number}:0", tool=tool)
        assert result.result is None and says in result.error.message, result


async def test_neither_another_user_nor_a_call_without_a_grant_runs_a_command(call: Any, tmp_path: Path) -> None:
    for tool, args in (("shell_exec", {"command": "touch made"}), ("shell_script", {"script": "touch made"})):
        request = ToolRequest(query_id="q1", call_id="q1:0:0", tool=tool, args=args)
        trace = Trace("q1", session_id="s1", user_id="ann")
        result = await call.bus.request(request, ToolResult, SECONDS, trace)
        assert result.error is not None and result.error.kind == "not_yours"
    call.tool.lent(Resources(data_dir=tmp_path))  # as whoever is started; nobody has made a key there
    for tool, args in (("shell_exec", {"command": "touch made"}), ("shell_script", {"script": "touch made"})):
        result = await call.call(args, tool=tool)
        assert result.error is not None and result.error.kind == "not_granted"
    assert not (tmp_path / "workspace" / "made").exists()


async def test_of_much_output_both_ends_are_told_and_all_of_it_is_kept(call: Any, tmp_path: Path) -> None:
    result = await call.call({"command": "seq 1 20000; printf '\\0\\xff\\033[2J'"}, tool="shell_exec")
    assert "\n1\n2\n3\n" in result.result and result.result.endswith("20000\n\\x00\\xff\\x1b[2J")
    assert 30_000 <= len(result.result) < 30_200 and "[Left out here: " in result.result
    whole = BlobStore(tmp_path / "blobs").get(result.whole["$blob"]).decode()
    assert "\n10001\n10002\n" in whole and "\n10001\n" not in result.result
    assert (len(whole), result.result[:20_000]) == (result.whole["characters"], whole[: result.whole["shown"]])


async def test_a_job_is_begun_followed_read_and_ended_and_is_on_record(call: Any) -> None:
    progress: asyncio.Queue[ToolProgress] = asyncio.Queue()
    told: asyncio.Queue[ToolJob] = asyncio.Queue()
    call.bus.subscribe(
        ToolProgress.subject, lambda envelope: progress.put_nowait(ToolProgress.decode(envelope.payload))
    )
    call.bus.subscribe(ToolJob.subject, lambda envelope: told.put_nowait(ToolJob.decode(envelope.payload)))
    await call.bus.ready()
    loop = (
        "trap 'echo no' TERM; echo begun; until test -e go; do sleep 0.1; done; echo gone on; sleep 1000 & wait; wait"
    )
    begun = await call.call({"command": loop, "background": True}, "q1:0:0", tool="shell_exec")
    assert begun.result.startswith("job-1 has started") and "\nbegun\n" in begun.result + "\n"
    assert (await told.get()).state == "running"
    second = await call.call({"command": "ls", "background": True}, "q1:0:1", tool="shell_exec")
    assert second.error.kind == "too_many"
    assert loop in (await call.call({}, "q1:0:2", tool="shell_output")).result
    assert (await call.call({"job": "job-1"}, "q2:0:0", "q2", tool="shell_output")).error.kind == "unknown_job"

    await call.call({"command": ["touch", "go"]}, "q1:0:3", tool="shell_exec")
    more = await call.call({"job": "job-1", "start": 6, "wait": 20}, "q1:0:4", tool="shell_output")
    assert more.result.startswith("running, ") and "\n\ngone on\n" in more.result
    heard = ""
    while "gone on" not in heard:
        heard += (await asyncio.wait_for(progress.get(), SECONDS)).text

    stopped = await call.call({"job": "job-1"}, "q1:0:5", tool="shell_stop")
    assert "stopped on request" in stopped.result
    ended = await asyncio.wait_for(told.get(), SECONDS)
    assert (ended.state, ended.output.startswith("begun\ngone on\n")) == ("ended", True) and ended.outcome


async def test_what_reads_and_ends_jobs_is_offered_when_there_has_been_one(call: Any) -> None:
    def offered() -> list[str]:
        return [call.schemas.get_nowait().tool for _ in range(call.schemas.qsize())]

    assert offered() == ["shell_exec", "shell_script"]
    await call.call({"command": "true"}, "q1:0:0", tool="shell_exec")
    assert offered() == []
    await call.call({"command": "true", "background": True}, "q1:0:1", tool="shell_exec")
    assert offered() == ["shell_exec", "shell_script", "shell_output", "shell_stop"]
    await call.call({"command": "true", "background": True}, "q1:0:2", tool="shell_exec")
    assert offered() == []


async def test_what_runs_when_the_tool_stops_ends_with_it_and_is_told(call: Any) -> None:
    told: asyncio.Queue[ToolJob] = asyncio.Queue()
    call.bus.subscribe(ToolJob.subject, lambda envelope: told.put_nowait(ToolJob.decode(envelope.payload)))
    await call.bus.ready()
    await call.call({"command": "echo begun; sleep 990", "background": True}, "q1:0:0", tool="shell_exec")
    await call.tool._jobs.close()
    assert (await told.get()).state == "running"
    ended = await asyncio.wait_for(told.get(), SECONDS)
    assert (ended.state, ended.output) == ("ended", "begun\n") and ended.outcome.startswith("stopped on request")
    assert (await call.call({}, "q1:0:1", tool="shell_output")).result == "There are no jobs."


async def test_a_deleted_conversation_takes_its_jobs_along(call: Any) -> None:
    await call.call({"command": "sleep 991", "background": True}, "q1:0:0", tool="shell_exec")
    job = call.tool._jobs.job("job-1", "q1")
    await call.tool.forget_session(SessionDeleted(deleted_session_id="q1"), None)
    assert (await call.call({"job": "job-1"}, "q1:0:1", tool="shell_output")).error.kind == "unknown_job"
    async with asyncio.timeout(SECONDS):
        await job.more_than(1 << 40)
    assert job.outcome is not None


async def test_without_a_sandbox_nothing_is_offered_and_it_says_how_to_get_one(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shell, "sandbox_of_this_machine", lambda: Bubblewrap.found())
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxMissing):
        Bubblewrap.found()
    call = await serve(Shell.build(ShellConfig(), Resources(data_dir=tmp_path)))
    assert "apt install bubblewrap" in call.tool.details()["off"] and call.schemas.empty()


async def test_for_a_folder_that_no_command_may_be_given_nothing_is_offered_and_it_says_why(
    serve: Serve, tmp_path: Path
) -> None:
    resources = Resources(data_dir=tmp_path, workspace=Path("/usr/local"))
    call = await serve(Shell.build(ShellConfig(), resources))
    assert call.tool.details()["off"] == "the workspace /usr/local is a part of the system: choose another folder"
    assert call.schemas.empty()


class Skills(Participant):
    """Holds the skills in a folder."""

    name = "files"

    def __init__(self, folder: Path) -> None:
        super().__init__(Settingless())
        self.folder = folder

    @on(SkillRequest)
    async def answer(self, request: SkillRequest, envelope: Envelope) -> SkillResult:
        found = [
            SkillRecord(name=path.name, status="ready", place="settings", folder=str(path))
            for path in sorted(self.folder.iterdir())
        ]
        return SkillResult(verb=request.verb, skills=tuple(found))


async def test_programs_of_a_skill_are_run_and_not_changed(serve: Serve, call: Any, tmp_path: Path) -> None:
    """Its folder lies in that of the settings, of which nothing else is seen."""
    folder = tmp_path / "settings" / "skills" / "tides"
    folder.mkdir(parents=True)
    (folder / "moon.sh").write_text("echo full; echo new > /skills/tides/moon.sh; ls /skills; ls /")
    (tmp_path / "settings" / "key").write_text("secret")
    await serve(Skills(folder.parent))
    changed = SkillsChanged(ready=("tides",))
    await call.tool.on_skills_changed(changed, call.bus.seal(changed))
    await call.tool._looking
    result = await call.call({"command": ["sh", "/skills/tides/moon.sh"]}, "q1:0:0", tool="shell_exec")
    assert "full\n" in result.result and "Read-only file system" in result.result
    assert "\ntides\n" in result.result and "settings" not in result.result
    assert (folder / "moon.sh").read_text().startswith("echo full")

"""A program in a user's home starts in the sandbox with what is named for it, and not without."""

from __future__ import annotations

import shutil
import sys
import venv
from pathlib import Path

import pytest

from local.core.errors import ToolError
from local.sandbox.interpreters import Program, program_of
from local.sandbox.process import PATH, ContainedCommand, ContainedProcess, SandboxLimits
from local.sandbox.sandbox import Bubblewrap, SandboxView

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is of Linux")
PYTHON = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
SAYS = "print('it runs')"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


async def said(program: Program, *arguments: str, folder: Path, shows: bool = True) -> str:
    """What it prints in a sandbox with what it needs, or without."""
    (folder / "work").mkdir(exist_ok=True)
    limits = SandboxLimits(seconds=60, free_bytes=0)
    view = SandboxView(folder / "work", (*program.needs, *program.optional) if shows else ())
    command = ContainedCommand((str(program.path), *arguments), environment={"PATH": f"{program.path.parent}:{PATH}"})
    process = ContainedProcess(folder / "work", limits, lambda: None)
    try:
        await process.start(Bubblewrap("bwrap").launch(command, view, limits))
        await process.wait()
        return process.output.part(0, -1).decode().strip()
    finally:
        process.close()


def script(path: Path, first: str, text: str = SAYS) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{first}\n{text}\n")
    path.chmod(0o755)
    return path


async def test_a_program_of_a_virtual_environment_starts_with_it_and_the_python_below_it(home: Path) -> None:
    made, source = home / "project" / ".venv", home / "project" / "src"
    venv.create(made, symlinks=True)
    source.mkdir()
    (source / "mine.py").write_text(SAYS)
    [packages] = made.glob("lib/python3*/site-packages")
    (packages / "mine.pth").write_text(f"{source}\nimport sys\n")
    server = script(made / "bin" / "server", str(made / "bin" / "python"), "import mine")
    for command in (str(server), "~/project/.venv/bin/server"):
        program = program_of(command)
        assert program is not None and program.kind == f"a virtual environment of Python in {made}"
        assert made in program.needs and program.optional == (source,)
        assert program.missing([home / "project", Path(sys.base_prefix)]) == []
        assert await said(program, folder=home) == "it runs"
        with pytest.raises(ToolError, match="No such file"):
            await said(program, folder=home, shows=False)


async def test_a_python_behind_links_of_folders_as_uv_makes_them_starts(home: Path) -> None:
    installed = home / ".local" / "share" / "uv" / "python"
    (installed / "cpython-3.1.2" / "lib" / "python3.1").mkdir(parents=True)
    (installed / "cpython-3.1.2" / "bin").mkdir()
    (installed / "cpython-3.1.2" / "bin" / PYTHON.name).symlink_to(PYTHON)
    (installed / "cpython-3.1").symlink_to("cpython-3.1.2")
    made = home / "p" / ".venv"
    (made / "bin").mkdir(parents=True)
    (made / "bin" / "python").symlink_to(installed / "cpython-3.1" / "bin" / PYTHON.name)
    (made / "pyvenv.cfg").write_text(f"home = {installed}/cpython-3.1/bin\n")
    program = program_of(str(made / "bin" / "python"))
    assert program is not None
    assert {made, installed / "cpython-3.1", installed / "cpython-3.1.2"} <= {*program.needs}
    assert await said(program, "-c", SAYS, folder=home) == "it runs"


async def test_a_shim_of_pyenv_is_the_program_that_it_starts(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYENV_VERSION", raising=False)
    root = home / ".pyenv"
    script(root / "shims" / "python3", "/usr/bin/env bash", "exec pyenv exec python3")
    (root / "versions" / "3.9.1" / "bin").mkdir(parents=True)
    (root / "versions" / "3.9.1" / "lib" / "python3.9").mkdir(parents=True)
    (root / "versions" / "3.9.1" / "bin" / "python3").symlink_to(PYTHON)
    (root / "version").write_text("3.9.1\n")
    program = program_of("python3", search=f"{root / 'shims'}:{PATH}")
    assert program is not None and program.path == root / "versions" / "3.9.1" / "bin" / "python3"
    assert program.kind == "a Python of pyenv"
    assert root / "versions" / "3.9.1" in program.needs


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs a shell in place of node")
async def test_a_script_of_node_starts_with_the_node_beside_it_as_in_nvm(home: Path) -> None:
    prefix = home / ".nvm" / "versions" / "node" / "v22.1.0"
    script(prefix / "bin" / "node", "/bin/sh", "echo it runs")
    cli = script(prefix / "lib" / "node_modules" / "npm" / "bin" / "npx-cli.js", "/usr/bin/env node", "")
    (prefix / "bin" / "npx").symlink_to("../lib/node_modules/npm/bin/npx-cli.js")
    program = program_of("npx", search=str(prefix / "bin"))
    assert program is not None and (program.kind, program.needs) == ("a Node.js of nvm", (prefix,)) and cli.exists()
    assert await said(program, folder=home) == "it runs"


async def test_a_program_by_itself_and_the_files_that_it_is_given_are_needed_and_nothing_beside_them(
    home: Path,
) -> None:
    tool = script(home / ".local" / "bin" / "tool", "/bin/sh", 'echo it runs; cat "$1"')
    (home / ".local" / "lib" / "python3.9").mkdir(parents=True)
    (home / "data").mkdir()
    (home / "data" / "given").write_text("and reads")
    (home / "loose").write_text("this, too")
    program = program_of("tool", (str(home / "data" / "given"), "relative", str(home / "loose")), str(tool.parent))
    assert program is not None and program.needs == (tool, home / "data", home / "loose")
    assert await said(program, str(home / "data" / "given"), folder=home) == "it runs\nand reads"


def test_a_program_of_the_system_needs_nothing_and_one_that_is_missing_is_none() -> None:
    assert program_of("sh", search=PATH) == Program(Path(shutil.which("sh", path=PATH) or ""))
    assert program_of("no-such-program") is None

"""A capability is one folder and one line: it can be taken out, and a new one can be added, without another change."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from textwrap import dedent

import pytest

from local.core.capability import NAMES
from tests.source_trees import NEEDED

ROOT = Path(__file__).parents[2]
OPTIONAL = tuple(name for name in NAMES if name not in NEEDED)

IMPORT_ALL = """
import importlib, os, shutil, sys, traceback
from pathlib import Path

import local.run.preload  # with all that it imports of other packages: each child begins with that

def import_rest(name):
    for module in [each for each in sys.modules if each.partition(".")[0] == "local"]:
        del sys.modules[module]
    import local.run.preload
    from local.core.capability import capabilities, participants
    targets = [command.target for each in capabilities().values() for command in each.commands.values()]
    for module in (*(target.partition(":")[0] for target in targets), "local.run.doctor", "local.run.upkeep"):
        importlib.import_module(module)
    assert name not in capabilities()
    assert not [target for target in participants().values() if target.startswith(f"local.{name}.")]

source, aside = Path(sys.argv[1], "local"), Path(sys.argv[1], "aside")
table = source / "core" / "capability.py"
whole = table.read_text()
for name in sys.argv[2:]:
    (source / name).rename(aside)
    (source / name).mkdir()
    if (aside / "messages.py").exists():
        shutil.copy2(aside / "messages.py", source / name)
    table.write_text(whole.replace(f'    "{name}",\\n', ""))
    for compiled in table.parent.glob("__pycache__/capability.*"):  # which tells versions of one second apart by size
        compiled.unlink()
    if child := os.fork():
        _, status = os.waitpid(child, 0)
        if status:
            print(name)
    else:
        try:
            import_rest(name)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    shutil.rmtree(source / name)
    aside.rename(source / name)
"""


def copied(to: Path) -> Path:
    """A copy of the source, and what is shipped beside it."""
    shutil.copytree(ROOT / "src" / "local", to / "src" / "local", ignore=shutil.ignore_patterns("page"))
    for shipped in ("config", "stories"):
        (to / shipped).symlink_to(ROOT / shipped)
    return to / "src"


def take_out(source: Path, names: Collection[str]) -> None:
    """Remove folders but for the words that others may know, and their lines."""
    table = source / "local" / "core" / "capability.py"
    text = table.read_text()
    for name in names:
        for path in (source / "local" / name).iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != "messages.py":
                path.unlink()
        text = text.replace(f'    "{name}",\n', "")
    table.write_text(text)


def run(source: Path, *arguments: str, seconds: float = 100) -> subprocess.CompletedProcess[str]:
    """Python with that source, in folders of its own."""
    home = source.parent / "home"
    home.mkdir(exist_ok=True)
    ours = {
        "PYTHONPATH": str(source), "HOME": str(home), "LOCAL2_DATA_DIR": str(home / "data"),
        "XDG_CONFIG_HOME": str(home / "config"),
    }  # fmt: skip
    without = ("LOCAL2_", "PYTHONDONTWRITEBYTECODE")  # to compile each file once, not once for each process
    environment = {**{key: value for key, value in os.environ.items() if not key.startswith(without)}, **ours}
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        cwd=home,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


@pytest.mark.thorough
@pytest.mark.timeout(600)
def test_each_optional_capability_can_be_taken_out_alone(tmp_path: Path) -> None:
    """Two CPU seconds for each; `test_architecture.py` reads the same from the imports in the source."""
    done = run(copied(tmp_path), "-c", IMPORT_ALL, str(tmp_path / "src"), *OPTIONAL, seconds=600)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr[-3000:]


def test_a_system_without_any_optional_capability_answers(tmp_path: Path) -> None:
    source = copied(tmp_path)
    take_out(source, OPTIONAL)
    listed = run(source, "-c", "from local.core.capability import participants; print(*participants())").stdout.split()
    assert listed == ["arbiter", "model_keeper", "generator", "generator_b", "gatekeeper"]
    done = run(source, "-m", "local.cli.entry", "ask", "--json", "What is 2+2?")
    assert done.returncode == 0, done.stderr[-3000:]
    assert "4" in json.loads(done.stdout.splitlines()[-1])["answer"]


DICE = {
    "__init__.py": """
        from local.core.capability import Capability, Command, Section

        CAPABILITY = Capability(
            participants={"dice": "local.dice.tools:DiceTool"},
            routes=("local.dice.routes:add_routes",),
            commands={"dice": Command("local.dice.commands:dice", Section.TOOLS, "Say how many sides a die has")},
        )
    """,
    "tools.py": """
        from local.core.config import Settings
        from local.tools.tool import Tool

        class DiceConfig(Settings):
            sides: int = 6

        class DiceTool(Tool):
            \"\"\"Tell how many sides the die has.\"\"\"

            name = "dice"
            safety = "L0"
            Config = DiceConfig

            async def run(self) -> str:
                return f"{self.config.sides} sides"
    """,
    "routes.py": """
        from local.api.security import Access, open_to

        def add_routes(routes):
            @routes.get("/dice")
            @open_to(Access.ANYBODY)
            async def dice() -> dict[str, int]:
                return {"dice": 1}
    """,
    "commands.py": """
        import typer

        def dice() -> None:
            typer.echo("a die")
    """,
}
USE_ALL = """
import asyncio, sys
from pathlib import Path

from fastapi.testclient import TestClient

from local.api.app import routed
from local.cli.command_table import run_command
from local.core.bus_address import BusAddress
from local.core.config import layers_for, load_system
from local.core.environment import environment
from local.run.participant import ParticipantSpec, make
from local.runtime.participant import Resources

folder = Path(sys.argv[1])
layers = tuple(layers_for(folder))
(entry,) = [each for each in load_system(layers, {}, environment()).participants if each.name == "dice"]
tool = make(ParticipantSpec(entry.target, BusAddress("ipc:///a", "ipc:///b"), Resources(folder, layers=layers), layers))
print(asyncio.run(tool.run()))
print(TestClient(routed()).get("/dice").json()["dice"])
print(run_command(["dice"]))
"""


def test_a_new_capability_is_one_folder_and_one_line(tmp_path: Path) -> None:
    """With a tool, a setting of it, a route and a command."""
    source, settings = copied(tmp_path), tmp_path / "settings"
    (source / "local" / "dice").mkdir()
    for name, text in DICE.items():
        (source / "local" / "dice" / name).write_text(dedent(text))
    table = source / "local" / "core" / "capability.py"
    table.write_text(table.read_text().replace('    "cron",\n', '    "cron",\n    "dice",\n'))
    settings.mkdir()
    (settings / "system.yaml").write_text("more_participants: [dice]\n")
    (settings / "dice.yaml").write_text("sides: 20\n")
    done = run(source, "-c", USE_ALL, str(settings))
    assert done.stdout.splitlines() == ["20 sides", "1", "a die", "0"], done.stderr[-3000:]

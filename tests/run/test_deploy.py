"""The unit and the container file of docs/ name what is there: commands, options, variables and files."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from local.cli.command_table import run_command
from local.core.environment import environment

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
UNIT = (DOCS / "local2.service").read_text()
CONTAINER = (DOCS / "Containerfile").read_text().replace("\\\n", "")


def options(words: list[str]) -> set[str]:
    return {word for word in words if word.startswith("--")}


@pytest.fixture
def known_options(capsys: pytest.CaptureFixture[str]) -> set[str]:
    """Of `run`, as its help has them."""
    assert run_command(["run", "--help"]) == 0
    return set(re.findall(r"--[a-z-]+", capsys.readouterr().out))


def test_the_unit_and_the_container_start_the_system_with_options_that_it_has(known_options: set[str]) -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[method-assign,assignment]
    unit.read_string(UNIT)
    of_unit = shlex.split(unit["Service"]["ExecStart"])
    (found,) = re.findall(r"^CMD (.*)$", CONTAINER, re.M)
    of_container = json.loads(found)
    for program, command, *arguments in (of_unit, of_container):
        assert (Path(program).name, command) == ("local2", "run")
        assert "--api" in arguments
        assert options(arguments) <= known_options


def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    unit = tmp_path / "local2.service"
    unit.write_text(UNIT.replace("%h/local2/bin/local2", sys.executable))
    if analyze:  # not on every machine, and there the options above are what is checked
        places = {"XDG_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path)}
        words = [analyze, "verify", "--user", str(unit)]
        done = subprocess.run(words, env=places, capture_output=True, text=True, timeout=60)
        assert (done.returncode, "local2.service" in done.stderr) == (0, False), done.stderr


def test_the_container_is_made_of_files_that_are_there_and_variables_that_count() -> None:
    copied = [words.split()[:-1] for words in re.findall(r"^COPY (?!--from)(.*)$", CONTAINER, re.M)]
    assert copied
    assert [name for names in copied for name in names if not any(ROOT.glob(name))] == []
    (line,) = re.findall(r"^ENV (.*)$", CONTAINER, re.M)
    variables = dict(word.split("=", 1) for word in line.split() if word.startswith("LOCAL2_"))
    assert None not in (environment(variables).data_dir, environment(variables).config_dir)
    packed = re.search(r"only-include = (\[.*\])", (ROOT / "pyproject.toml").read_text())
    assert packed
    names = {name for found in copied for name in found}
    assert {name.partition("/")[0] for name in json.loads(packed[1])} <= names

"""MEMORY.md on a system that runs: written, edited by hand, read back, and what was read back taken back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from local.cli.entry import main
from local.cli.temporary_system import write_settings
from tests.warm.warm_system import WarmSystem

PARTICIPANTS = ["arbiter", "generator", "memory"]


@pytest.fixture
def places(tmp_path: Path) -> Iterator[list[str]]:
    config_dir = write_settings(tmp_path / "config", {"system": {"participants": PARTICIPANTS}})
    with WarmSystem(tmp_path / "data", config_dir=config_dir, flags=["--backend", "stand_in"]):
        yield ["--data-dir", str(tmp_path / "data")]


def test_the_memory_is_edited_as_a_file_and_read_back(
    tmp_path: Path, places: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    def memory(*arguments: str, status: int = 0) -> str:
        with pytest.raises(SystemExit) as ended:
            main(["memory", *arguments, *places])
        out, err = capfd.readouterr()
        assert int(str(ended.value.code or 0)) == status, err
        return out or err

    file = tmp_path / "config" / "MEMORY.md"
    of_settings = ("--config-dir", str(file.parent))
    assert "there is no" in memory("import", *of_settings, status=2)
    assert f"{file} is written" in memory("export", *of_settings)
    assert "MEMORY.ann.md is written" in memory("export", *of_settings, "--user", "ann")
    of_ann = file.with_name("MEMORY.ann.md")
    of_ann.write_text(of_ann.read_text().replace("## Facts\n", "## Facts\n- my name: Ann\n"))
    assert "+ fact  my name: Ann\n" in memory("import", *of_settings, "--user", "ann", "--yes")
    assert memory("import", str(file)) == "nothing is changed in it\n"
    file.write_text(file.read_text().replace("## Notes\n", "## Notes\n- The ladder is in the shed.\nladder\n"))
    assert "changes that were not read back" in memory("export", str(file), status=2)
    told = memory("import", str(file), "--yes", status=1)  # as one line of it is no good
    assert told.startswith("+ note  The ladder is in the shed.\n? line ")
    assert "- The ladder is in the shed. <!-- n" in file.read_text()
    assert "\nladder\n" in file.with_name("MEMORY.md.old").read_text()
    assert "The ladder is in the shed." in memory("notes")
    engrams = memory("list").splitlines()
    (source,) = [line.split()[0] for line in engrams if "Edited by hand" in line]
    memory("delete", source)
    assert memory("notes") == "nothing is noted\n"

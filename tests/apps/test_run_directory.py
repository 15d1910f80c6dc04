"""Where a system keeps its data and can be found."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from local.apps.run_directory import RunDirectory
from local.errors import ConfigError


def test_a_data_directory_that_cannot_be_made_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    taken = tmp_path / "notes.txt"
    taken.write_text("no folder")
    for path in (taken, taken / "data"):
        with pytest.raises(ConfigError, match=f"{path} cannot hold the data: .*--data-dir"):
            RunDirectory(path).make_data_dir()

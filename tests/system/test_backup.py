"""`local2 backup` beside a running system, and `local2 restore`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local.cli.entry import main
from tests.warm.warm_system import WarmSystem


def _local2(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(each) for each in arguments])
    return int(ended.value.code or 0)


def test_what_was_copied_while_it_ran_answers_as_before_when_it_is_put_back(
    start: Callable[[Path], WarmSystem], watching: Any, config_dir: Path, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    data, copy = tmp_path / "data", tmp_path / "copy"
    with start(data) as system:
        live = watching(system, config_dir)
        live.http.close()
        live.ask("Tell me about the Python GIL.", session_id="kept")
        asking = threading.Thread(target=lambda: [live.ask("What is 2+2?") for _ in range(10)])
        asking.start()
        assert _local2("backup", copy, "--data-dir", data) == 0
        asking.join()
        assert _local2("restore", copy, "--data-dir", data, "--force") == 2
        assert "a system already runs on" in capsys.readouterr().err
    assert _local2("restore", copy, "--data-dir", data) == 2
    assert "is not empty" in capsys.readouterr().err
    assert _local2("restore", copy, "--data-dir", data, "--force") == 0
    with start(data) as system:
        live = watching(system, config_dir)
        with live.http as http:
            assert http.get("/sessions/kept").status_code == 200
        assert "reference count" in live.ask("Why was it introduced?", session_id="kept")["answer"]
        assert not [line for line in system.log if "damaged" in line or " error " in line]

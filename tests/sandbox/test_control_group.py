"""The kernel's count of what a command takes, on file systems that stand for it."""

import os
from pathlib import Path

import pytest

from local.sandbox.process import MB, ControlGroup, SandboxLimits

LIMITS = SandboxLimits(processes=40, memory_bytes=100 * MB)


@pytest.mark.parametrize("places", ["version 2, below", "version 2, beside", "version 1"])
def test_a_group_is_made_where_processes_can_be_counted_and_goes_again(tmp_path: Path, places: str) -> None:
    own, root = tmp_path / "own", tmp_path / "root"
    group = root / ("pids/a/b" if places == "version 1" else "a/b")
    group.mkdir(parents=True)
    own.write_text("9:pids:/a/b\n1:cpu:/a\n" if places == "version 1" else "0::/a/b\n")
    counting = {"version 2, below": group, "version 2, beside": group.parent}.get(places)
    if counting is not None:
        (counting / "cgroup.subtree_control").write_text("cpu memory pids\n")
    made = ControlGroup.made(LIMITS, root, own)
    (folder,) = (counting or group).glob(f"local2-{os.getpid()}-*")
    made.add(4321)
    assert (folder / "cgroup.procs").read_text() == "4321"

    made.close()  # in use: a file lies in it, as a process would
    assert folder.exists()
    (folder / "cgroup.procs").unlink()
    dead = folder.parent / "local2-999999999-1"
    dead.mkdir()
    ControlGroup.made(LIMITS, root, own).close()
    assert list(folder.parent.glob("local2-*")) == []


def test_where_nothing_can_be_counted_nothing_is_made(tmp_path: Path) -> None:
    (tmp_path / "own").write_text("0::/a\n")
    (tmp_path / "a").mkdir()
    made = ControlGroup.made(LIMITS, tmp_path, tmp_path / "own")
    made.add(1)
    made.close()
    ControlGroup.made(LIMITS, tmp_path, tmp_path / "nowhere").close()
    assert list((tmp_path / "a").iterdir()) == []


@pytest.mark.parametrize(
    ("stat", "held"),
    [
        ("cache 900\nrss 1\ntotal_cache 900\ntotal_rss 70\ntotal_shmem 5\n", 75),
        ("anon 60\nfile 900\nshmem 4\n", 64),
        (None, None),
    ],
)
def test_what_the_kernel_counts_is_without_the_cache_of_files(
    tmp_path: Path, stat: str | None, held: int | None
) -> None:
    if stat is not None:
        (tmp_path / "memory.stat").write_text(stat)
    assert ControlGroup([tmp_path]).held_bytes() == held

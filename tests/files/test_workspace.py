"""Files found beneath a root and nowhere else, by the kernel's way and name by name: the same tests for both."""

import itertools
import os
import socket
import threading
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import pytest

from local.core.errors import ToolError
from local.core.workspace import (
    CloneSearch,
    Descent,
    Workspace,
    WorkspacePath,
    best_descent,
    descend_at_once,
    descend_by_name,
)
from local.files.edits import FileWriter

SECRET = b"a canary that nobody may see"


@pytest.fixture(params=[descend_at_once, descend_by_name])
def descent(request: pytest.FixtureRequest) -> Descent:
    """Both ways down; where the kernel has none, only the other."""
    if request.param is descend_at_once and best_descent() is not descend_at_once:
        pytest.skip("this kernel has no openat2")
    found: Descent = request.param
    return found


@pytest.fixture
def workspace(tmp_path: Path, descent: Descent) -> Workspace:
    """A workspace with a file, a folder and, beside it, a secret."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_bytes(SECRET)
    root = tmp_path / "work"
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.txt").write_bytes(b"inside")
    return Workspace(root, descent)


def read(workspace: Workspace, text: str, most: int = 1000) -> bytes:
    return workspace.read(workspace.path(text), most)


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(ToolError) as caught:
        call()
    return caught.value.kind


def test_a_file_is_read_by_its_path(workspace: Workspace) -> None:
    for text in ("src/a.txt", "./src//a.txt", "src/./a.txt"):
        assert read(workspace, text) == b"inside"
    assert read(workspace, str(workspace.root / "src/a.txt")) == b"inside"


def test_what_is_missing_is_named_with_what_is_near(workspace: Workspace) -> None:
    with pytest.raises(ToolError, match=r"'src/b.txt' is not there; there is 'src/a.txt'"):
        read(workspace, "src/b.txt")


def test_a_workspace_that_has_gone_says_so_and_works_again_when_it_is_back(workspace: Workspace) -> None:
    aside = workspace.root.rename(workspace.root.with_name("aside"))
    assert refused(lambda: read(workspace, "src/a.txt")) == "gone"
    aside.rename(workspace.root)
    assert read(workspace, "src/a.txt") == b"inside"


def test_no_link_is_followed_wherever_it_points(workspace: Workspace) -> None:
    root = workspace.root
    (root / "link.txt").symlink_to("src/a.txt")
    (root / "out").symlink_to("../outside")
    (root / "abs").symlink_to(root.parent / "outside" / "secret.txt")
    (root / "src" / "up").symlink_to("..")
    for text in ("link.txt", "out/secret.txt", "abs", "src/up/src/a.txt"):
        assert refused(lambda text=text: read(workspace, text)) == "link", text
    kinds = {entry.path: entry.kind for entry in workspace.entries(workspace.path("."), depth=9)}
    assert kinds == {
        "src": "folder", "src/a.txt": "file", "src/up": "link", "abs": "link", "link.txt": "link", "out": "link",
    }  # fmt: skip


def test_neither_pipe_nor_socket_nor_device_nor_folder_is_opened(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(workspace.root / "pipe")
    listening = socket.socket(socket.AF_UNIX)
    monkeypatch.chdir(workspace.root)  # the name of a socket may be no longer than that
    listening.bind("socket")
    for name in ("pipe", "socket", "src"):
        assert refused(lambda name=name: read(workspace, name)) == "not_a_file", name
    listening.close()
    assert refused(lambda: Workspace(Path("/dev")).read(workspace.path("null"), 10)) == "not_a_file"


def test_a_file_above_the_limit_is_not_read(workspace: Workspace) -> None:
    assert read(workspace, "src/a.txt", most=6) == b"inside"
    assert refused(lambda: read(workspace, "src/a.txt", most=5)) == "too_large"


def traversals() -> Iterator[str]:
    """Some 500 ways of writing a path that would lead out."""
    ups = ["..", "../..", "./..", ".//..", "src/../..", "src/./../..", "..%2f", "%2e%2e", "..\\", "..;", "...", "．．"]
    ups += [
        "..%c0%af",
        "%252e%252e",
        "..%00",
        ".. ",
        "..\t",
        "․․",
        "..\u200b",
        "\u202e..",
        "src/a.txt/..",
        "~",
        "$HOME",
    ]
    ups += [
        "/proc/self/cwd",
        "/proc/self/root",
        "/dev/fd/0",
        "file://",
        "C:",
        "\\\\?\\",
        "//",
        "///..",
        "out",
        "out/..",
    ]
    ends = ["outside/secret.txt", "etc/passwd", "../outside/secret.txt", "/outside//secret.txt", "outside\\secret.txt"]
    ends += ["outside/./secret.txt", "outside/secret.txt/", "outside/secret.txt\0", "outside/secret.txt%00.md"]
    for up, times, end in product(ups, (1, 7), ends):
        yield "/".join([up] * times) + "/" + end


def test_no_way_of_writing_a_path_leads_out(workspace: Workspace) -> None:
    (workspace.root / "out").symlink_to("../outside")
    tried = list(traversals())
    writer = FileWriter(workspace)
    for text in tried:
        with pytest.raises(ToolError):
            assert read(workspace, text) != SECRET
        with pytest.raises(ToolError):
            writer.remove(workspace.path(text), "0" * 64)
    assert (workspace.root.parent / "outside" / "secret.txt").read_bytes() == SECRET
    assert not (workspace.root.parent / "etc").exists()


def swap_and_try(workspace: Workspace, tries: int) -> tuple[int, int]:
    """Read and write through a folder that is a link to the outside every other moment; returns how often that
    went well, and how often something of the outside was seen or changed."""
    root, outside = workspace.root, workspace.root.parent / "outside"
    (root / "src" / "secret.txt").write_bytes(b"inside")
    (root / "link").symlink_to(outside)
    ending = threading.Event()

    def swap() -> None:
        while not ending.is_set():  # src is the folder, then the link, then the folder
            for one, other in (("src", "kept"), ("link", "src"), ("src", "link"), ("kept", "src")):
                (root / one).rename(root / other)
            ending.wait(0.0002)  # else a fast disk leaves nobody the time to get through

    swapping = threading.Thread(target=swap)
    swapping.start()
    writer, went_well, escaped = FileWriter(workspace), 0, 0
    path = workspace.path("src/secret.txt")
    try:
        for number in itertools.count():
            if number >= tries and went_well:
                break  # a busy machine can have every one of few tries meet the link
            try:
                if number % 2:
                    with (root / "new").open("wb+") as file:
                        file.write(b"inside")
                        file.seek(0)
                        writer.put(path, file, workspace.digest(path), f".part{number}")
                else:
                    escaped += workspace.read(path, 1000) != b"inside"
                went_well += 1
            except ToolError:
                pass
    finally:
        ending.set()
        swapping.join()
    return went_well, escaped + ([each.name for each in outside.iterdir()] != ["secret.txt"])


def test_a_folder_that_becomes_a_link_at_any_moment_leads_nowhere(workspace: Workspace) -> None:
    went_well, escaped = swap_and_try(workspace, 120)
    assert escaped == 0
    assert (workspace.root.parent / "outside" / "secret.txt").read_bytes() == SECRET
    assert went_well > 0, "the race was never run"


@pytest.mark.thorough
def test_ten_thousand_swaps_lead_nowhere(workspace: Workspace) -> None:
    went_well, escaped = swap_and_try(workspace, 10_000)
    assert escaped == 0
    assert (workspace.root.parent / "outside" / "secret.txt").read_bytes() == SECRET
    assert went_well > 100


def test_a_folder_whose_name_is_no_utf8_is_one_among_others(workspace: Workspace) -> None:
    try:
        os.mkdir(os.fsencode(workspace.root) + b"/caf\xe9")  # noqa: PTH102 - of bytes
    except OSError:
        pytest.skip("this file system takes no such name")
    found = [entry.path for entry in workspace.entries(WorkspacePath(()), depth=3)]
    assert found == ["caf\udce9", "src", "src/a.txt"]
    assert list(workspace.entries(WorkspacePath(("caf\udce9",)))) == []


REMOTE = '[core]\n\tbare = false\n[remote "origin"]\n\turl = https://git.example/x\n'


def repository(folder: Path, settings: str) -> Path:
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "config").write_text(settings)
    return folder


def of(root: Path, *paths: str) -> set[Path]:
    return CloneSearch(Workspace(root)).of(paths)


def test_a_workspace_without_a_repository_or_with_one_of_ones_own_is_no_clone(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    assert of(tmp_path, ".", "a.txt", "folder/not/there") == set()
    repository(tmp_path, "[core]\n\tbare = false\n")
    assert of(tmp_path, ".", "a.txt", "folder/not/there") == set()


def test_one_that_names_a_remote_in_a_section_is_a_clone_with_all_that_is_in_it(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    for settings in (REMOTE, "[remote]\nurl = x\n", '  [ Remote "x"]\n', "\n[core]\n[remote.origin]\n"):
        (tmp_path / ".git" / "config").write_text(settings)
        assert of(tmp_path, "src/deep/a.py") == of(tmp_path, ".") == of(tmp_path, "a.py") == {tmp_path}
    for settings in ("[core]\nbare = false\n", ""):
        (tmp_path / ".git" / "config").write_text(settings)
        assert of(tmp_path, "a.py") == set()


def test_the_nearest_repository_counts(tmp_path: Path) -> None:
    inner = repository(tmp_path / "libs" / "inner", REMOTE)
    assert of(tmp_path, "a.py", "libs/b.py") == set()
    assert of(tmp_path, "a.py", "libs/inner/c.py", "libs/inner") == {inner}
    repository(tmp_path, REMOTE)
    own = repository(tmp_path / "own", "[core]\n")
    assert of(tmp_path, "own/a.py") == set()
    assert of(own, "a.py") == set()


def test_a_repository_that_lies_elsewhere_or_cannot_be_read_counts_as_a_clone(tmp_path: Path) -> None:
    (tmp_path / "worktree").mkdir()
    (tmp_path / "worktree" / ".git").write_text("gitdir: /elsewhere\n")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / ".git").symlink_to("/elsewhere")
    (tmp_path / "bare" / ".git").mkdir(parents=True)
    for name in ("worktree", "linked", "bare"):
        assert of(tmp_path, f"{name}/a.py") == {tmp_path / name}

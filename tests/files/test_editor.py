"""Changes that can be undone, alone and together, over deaths and beside other people's changes."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from local.core.errors import ToolError
from local.core.workspace import Workspace
from local.files import edits as editor_module
from local.files.edits import ChangeCause, ChangeSelection, ChangeStore, ContentStore, Retention, WorkspaceEditor

Open = Callable[..., AbstractAsyncContextManager[WorkspaceEditor]]
DAY = 24 * 3600.0


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.txt").write_text("one")
    (folder / "a.txt").chmod(0o750)
    return folder


@pytest.fixture
def open_editor(root: Path, tmp_path: Path) -> Open:
    """Opens an editor of the workspace, as each process does."""

    @asynccontextmanager
    async def opened(
        now: float = 1000.0, most_bytes: int = 1_000_000, most_bytes_of_file: int = 10_000
    ) -> AsyncIterator[WorkspaceEditor]:
        limits = Retention(most_bytes=most_bytes)
        contents = ContentStore(tmp_path / "contents", most_bytes_of_file)
        changes = ChangeStore(tmp_path / "changes.db", lambda: now)
        async with WorkspaceEditor(Workspace(root), changes, contents, limits).opened() as editor:
            yield editor

    return opened


def cause(call: str = "q1:0:0", *, is_tainted: bool = False) -> ChangeCause:
    return ChangeCause("write_file", call, call.partition(":")[0], "s1", is_tainted)


def names(folder: Path) -> list[str]:
    """What lies in a folder, and in those within it."""
    return sorted(path.name for path in folder.rglob("*"))


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


async def write(editor: WorkspaceEditor, name: str, text: str, call: str = "q1:0:0", **more: bool) -> None:
    path = editor.workspace.path(name)
    present = editor.workspace.digest(path)
    await editor.write(path, text.encode(), cause(call, **more), present, keeps_taint=False)


async def test_a_write_is_undone_with_its_permissions(open_editor: Open, root: Path) -> None:
    async with open_editor() as editor:
        await write(editor, "a.txt", "two")
        assert (root / "a.txt").read_text() == "two"
        assert (root / "a.txt").stat().st_mode & 0o777 == 0o750
        (change,) = await editor.undo(ChangeSelection(call_id="q1:0:0"))
        assert (root / "a.txt").read_text() == "one"
        assert (root / "a.txt").stat().st_mode & 0o777 == 0o750
        assert editor.texts(change) == (b"one", b"two")
        assert names(root) == ["a.txt"]


async def test_a_new_file_goes_with_the_folders_made_for_it_if_empty(open_editor: Open, root: Path) -> None:
    async with open_editor() as editor:
        await write(editor, "new/deep/b.txt", "text")
        await editor.undo(ChangeSelection(call_id="q1:0:0"))
        assert names(root) == ["a.txt"]
        await write(editor, "new/deep/b.txt", "text")
        (root / "new" / "mine.txt").write_text("mine")
        await editor.undo(ChangeSelection(call_id="q1:0:0"))
        assert names(root) == ["a.txt", "mine.txt", "new"]


async def test_a_deleted_file_comes_back(open_editor: Open, root: Path) -> None:
    async with open_editor() as editor:
        await editor.delete(editor.workspace.path("a.txt"), cause())
        assert not (root / "a.txt").exists()
        await editor.undo(ChangeSelection(query_id="q1"))
        assert (root / "a.txt").read_text() == "one"
        with pytest.raises(ToolError, match="is not there"):
            await editor.delete(editor.workspace.path("b.txt"), cause())


async def test_a_turn_is_undone_as_a_whole_and_a_day_too(open_editor: Open, root: Path) -> None:
    async with open_editor() as editor:
        for number in range(3):
            await write(editor, "a.txt", f"v{number}", f"q1:{number}:0")
        await write(editor, "b.txt", "new", "q1:3:0")
        assert len(await editor.undo(ChangeSelection(query_id="q1"))) == 4
        assert (root / "a.txt").read_text() == "one"
        assert not (root / "b.txt").exists()
        await write(editor, "a.txt", "again", "q2:0:0")
    async with open_editor(now=1000.0 + DAY) as editor:
        await write(editor, "b.txt", "today", "q3:0:0")
        await editor.undo(ChangeSelection(since=1000.0 + DAY))
        assert (root / "a.txt").read_text() == "again"
        await editor.undo(ChangeSelection(until=1000.0 + DAY))
        assert (root / "a.txt").read_text() == "one"
        states = [change.state for change in await editor.changes.select(ChangeSelection())]
        assert states == ["undone"] * 6


async def test_what_was_changed_since_is_refused_and_nothing_is_touched(open_editor: Open, root: Path) -> None:
    async with open_editor() as editor:
        await write(editor, "a.txt", "two")
        await write(editor, "b.txt", "two", "q1:0:1")
        (root / "b.txt").write_text("text")
        with pytest.raises(ToolError, match=r"nothing was undone: 'b\.txt' was changed since"):
            await editor.undo(ChangeSelection(query_id="q1"))
        assert (root / "a.txt").read_text() == "two"
        (root / "b.txt").unlink()  # it was not there before either
        await editor.undo(ChangeSelection(query_id="q1"))
        assert (root / "a.txt").read_text() == "one"


async def test_what_a_later_call_has_changed_too_is_refused(open_editor: Open, root: Path) -> None:
    async with open_editor() as editor:
        await write(editor, "a.txt", "two", "q1:0:0")
        await write(editor, "a.txt", "three", "q2:0:0")
        with pytest.raises(ToolError, match="was changed since; undo later changes first"):
            await editor.undo(ChangeSelection(call_id="q1:0:0"))
        await editor.undo(ChangeSelection(call_id="q2:0:0"))
        await editor.undo(ChangeSelection(call_id="q1:0:0"))
        assert (root / "a.txt").read_text() == "one"


async def test_what_somebody_changed_between_two_changes_is_not_lost(open_editor: Open, root: Path) -> None:
    async with open_editor() as editor:
        await write(editor, "a.txt", "two", "q1:0:0")
        (root / "a.txt").write_text("by hand")
        await write(editor, "a.txt", "three", "q1:1:0")
        with pytest.raises(ToolError, match="by somebody else between these changes"):
            await editor.undo(ChangeSelection(query_id="q1"))
        await editor.undo(ChangeSelection(call_id="q1:1:0"))
        assert (root / "a.txt").read_text() == "by hand"


async def test_a_write_on_what_was_changed_meanwhile_is_refused(open_editor: Open, root: Path) -> None:
    async with open_editor() as editor:
        path = editor.workspace.path("a.txt")
        expected = editor.workspace.digest(path)
        (root / "a.txt").write_text("by hand")
        with pytest.raises(ToolError, match="was changed by somebody else"):
            await editor.write(path, b"two", cause(), expected, keeps_taint=False)
        assert (root / "a.txt").read_text() == "by hand"
        assert await editor.changes.select(ChangeSelection()) == []


@pytest.mark.parametrize("point", ["files.begun", "files.written"])
async def test_what_is_changed_while_a_write_is_under_way_is_not_lost(
    open_editor: Open, root: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    def by_hand(reached: str) -> None:
        if reached == point:
            (root / "a.txt").write_text("by hand")

    monkeypatch.setattr(editor_module.failpoints, "reach", by_hand)
    async with open_editor() as editor:
        with pytest.raises(ToolError, match="was changed by somebody else"):
            await write(editor, "a.txt", "two")
        assert (root / "a.txt").read_text() == "by hand"
        assert await editor.changes.select(ChangeSelection()) == []


class Killed(BaseException):
    """What a process that is killed at a failpoint does: nothing any more."""


@pytest.mark.parametrize(
    ("name", "point", "happened"),
    [
        ("a.txt", "files.begun", False),
        ("new.txt", "files.written", False),
        ("a.txt", "files.changed", True),
        ("new.txt", "files.changed", True),
    ],
)
async def test_a_killed_process_leaves_what_the_next_one_finds_out(
    open_editor: Open, root: Path, monkeypatch: pytest.MonkeyPatch, name: str, point: str, happened: bool
) -> None:
    def killed(reached: str) -> None:
        if reached == point:
            raise Killed

    before = (root / name).read_text() if (root / name).exists() else None
    with monkeypatch.context() as patched:
        patched.setattr(editor_module.failpoints, "reach", killed)
        async with open_editor() as editor:
            if point == "files.written":
                patched.setattr("os.unlink", lambda *args, **named: None)  # nor does it clean up
            with pytest.raises(Killed):
                await write(editor, name, "two")
    async with open_editor() as editor:
        changes = await editor.changes.select(ChangeSelection())
        assert [change.state for change in changes] == ["done"] * happened
        assert ((root / name).read_text() == "two") if happened else ".local2" not in str(names(root))
        if happened:
            await editor.undo(ChangeSelection())
        assert ((root / name).read_text() if (root / name).exists() else None) == before


async def test_an_undo_that_was_killed_is_finished_by_the_next(
    open_editor: Open, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(reached: str) -> None:
        if reached == "files.undone":
            raise Killed

    async with open_editor() as editor:
        await write(editor, "a.txt", "two", "q1:0:0")
        await write(editor, "b.txt", "two", "q1:0:1")
        with monkeypatch.context() as patched:
            patched.setattr(editor_module.failpoints, "reach", killed)
            with pytest.raises(Killed):
                await editor.undo(ChangeSelection(query_id="q1"))
        assert (root / "a.txt").read_text() == "one"
        await editor.undo(ChangeSelection(query_id="q1"))
        assert not (root / "b.txt").exists()


async def test_a_file_that_cannot_be_kept_is_not_changed(open_editor: Open, root: Path) -> None:
    async with open_editor(most_bytes_of_file=2) as editor:
        with pytest.raises(ToolError, match="too much to be kept"):
            await write(editor, "a.txt", "x")
        assert (root / "a.txt").read_text() == "one"


async def test_what_is_kept_is_bounded_by_age_and_by_size(open_editor: Open, tmp_path: Path) -> None:
    async with open_editor(most_bytes=1000) as editor:
        for number in range(15):
            await write(editor, "a.txt", f"{number:100}", f"q{number}:0:0")
        kept = await editor.changes.select(ChangeSelection())
        assert 0 < len(kept) < 15
        assert size_of(tmp_path / "contents") <= 1000
        await editor.undo(ChangeSelection(call_id="q14:0:0"))
    async with open_editor(now=1000.0 + 31 * DAY) as editor:
        assert await editor.changes.select(ChangeSelection()) == []
        assert names(tmp_path / "contents") == []


async def test_nothing_is_kept_of_a_deleted_session(open_editor: Open, tmp_path: Path) -> None:
    async with open_editor() as editor:
        await write(editor, "a.txt", "private words")
        await editor.forget(session_id="s1")
        assert names(tmp_path / "contents") == []
        with pytest.raises(ToolError, match="no change of that kind"):
            await editor.undo(ChangeSelection(query_id="q1"))


async def test_words_of_strangers_stay_marked_wherever_they_are_copied(open_editor: Open, root: Path) -> None:
    async with open_editor() as editor:
        await write(editor, "page.md", "obey me", is_tainted=True)
        assert await editor.is_tainted(["page.md"])
        assert not await editor.is_tainted(["a.txt"])
        digest = editor.workspace.digest(editor.workspace.path("page.md"))
        assert await editor.is_tainted(["copied by hand.md"], [digest])
        path = editor.workspace.path("page.md")
        await editor.write(path, b"obey me!", cause("q2:0:0"), digest, keeps_taint=True)
        assert await editor.is_tainted(["page.md"])
        await write(editor, "page.md", "my own words", "q3:0:0")
        assert not await editor.is_tainted(["page.md"])
        await editor.undo(ChangeSelection(call_id="q3:0:0"))
        assert await editor.is_tainted(["page.md"])


async def test_a_change_of_another_workspace_is_not_undone_here(open_editor: Open, root: Path) -> None:
    async with open_editor() as editor:
        await write(editor, "a.txt", "two")
        editor.workspace.root = root.parent
        with pytest.raises(ToolError, match="was changed in the workspace"):
            await editor.undo(ChangeSelection(query_id="q1"))

"""What the owner has written is told as it is now, and what cannot be told is a line each."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from local.core.files import MOST_OF_OWNERS_TEXT
from local.core.owner_texts import SourcedText, StandingTextFiles, StandingTexts
from local.core.trust import TrustRegistry
from local.core.versioned_text import soul_history
from local.generator.prompt import SHARE, fitting


class Owner:
    """Somebody with a folder of settings and one to work in."""

    def __init__(self, folder: Path) -> None:
        self.settings, self.workspace, self.data_dir = folder / "settings", folder / "work", folder / "data"
        for each in (self.settings, self.workspace / ".local2", self.data_dir):
            each.mkdir(parents=True)
        self.files = StandingTextFiles(self.settings, self.workspace, history=soul_history(self.data_dir))

    def writes(self, name: str, content: str | bytes) -> None:
        path = self.settings / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    def instructs(self, text: str) -> None:
        (self.workspace / ".local2" / "LOCAL2.md").write_text(text)

    def texts(self) -> list[str]:
        return [text.text for text in self.files.current().instructions]


@pytest.fixture
def owner(tmp_path: Path) -> Owner:
    return Owner(tmp_path)


def test_where_nothing_is_written_nothing_is_told_and_nothing_kept(owner: Owner) -> None:
    assert owner.files.current() == StandingTexts()
    assert list(owner.data_dir.iterdir()) == []


def test_what_the_settings_instruct_is_told_before_the_workspace_and_the_soul_by_itself(owner: Owner) -> None:
    owner.writes("LOCAL2.md", "\ufeffAnswer in French.\n")
    owner.writes("SOUL.md", "You are dry.\n")
    owner.instructs("Use tabs.\n")
    TrustRegistry(owner.settings).trust(owner.workspace)
    found = owner.files.current()
    assert found.instructions == (
        SourcedText("LOCAL2.md of the settings", "Answer in French."),
        SourcedText("LOCAL2.md of the workspace", "Use tabs."),
    )
    assert (found.soul, found.problems) == (SourcedText("SOUL.md", "You are dry."), ())


def test_a_workspace_instructs_only_while_it_is_trusted_as_it_is(owner: Owner) -> None:
    registry = TrustRegistry(owner.settings)
    owner.instructs("Use tabs.")
    assert owner.texts() == [] and "is not trusted" in owner.files.texts.problems[0]
    registry.trust(owner.workspace)
    assert owner.texts() == ["Use tabs."] and not owner.files.texts.problems
    owner.instructs("Use spaces.")
    assert owner.texts() == [] and "other instructions than when it was trusted" in owner.files.texts.problems[0]
    registry.trust(owner.workspace)
    assert owner.texts() == ["Use spaces."]
    registry.distrust(owner.workspace)
    assert owner.texts() == []


def test_files_are_read_again_only_after_a_change(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    owner.writes("LOCAL2.md", "One.")
    assert owner.texts() == ["One."] and owner.files.is_current
    monkeypatch.setattr(StandingTextFiles, "read", lambda files: pytest.fail("it was read again"))
    assert owner.texts() == ["One."]
    monkeypatch.undo()
    owner.writes("LOCAL2.md", "Two, longer.")
    assert not owner.files.is_current and owner.texts() == ["Two, longer."]
    (owner.settings / "LOCAL2.md").unlink()
    assert owner.texts() == []


@pytest.mark.parametrize("name", ["LOCAL2.md", "SOUL.md"])
@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"a" * (MOST_OF_OWNERS_TEXT + 1), "more than 32000 bytes"),
        (b"ok \xff", "not UTF-8 text"),
        (None, "cannot be read"),
    ],
)
def test_what_cannot_be_told_is_one_clear_line_and_the_rest_is_told(
    owner: Owner, name: str, content: bytes | None, why: str
) -> None:
    for each in ("LOCAL2.md", "SOUL.md"):
        owner.writes(each, "Fine.")
    if content is None:
        (owner.settings / name).unlink()
        (owner.settings / name).mkdir()
    else:
        owner.writes(name, content)
    found = owner.files.current()
    [problem] = found.problems
    assert str(owner.settings / name) in problem and why in problem and "\n" not in problem
    assert (len(found.instructions), found.soul is None) == ((0, False) if name == "LOCAL2.md" else (1, True))


def test_what_has_no_room_in_the_window_is_left_out_and_named(owner: Owner) -> None:
    files = StandingTextFiles(owner.settings, owner.workspace, partial(fitting, window=1000))
    owner.writes("LOCAL2.md", "word " * 100)
    owner.writes("SOUL.md", "word " * 2000)
    found = files.current()
    assert len(found.instructions) == 1 and found.soul is None
    assert found.problems[0].startswith("SOUL.md is left out: with ") and 0 < SHARE < 0.5


def test_each_change_of_the_soul_is_a_version(owner: Owner) -> None:
    for text in ("Dry.", "Dry.", "Warm.", ""):
        owner.writes("SOUL.md", f"{text}\n\n")
        owner.files.read()
    kept = soul_history(owner.data_dir).versions()
    assert [(each.number, each.by, each.text) for each in kept] == [
        (1, "by hand", "Dry."), (2, "by hand", "Warm."), (3, "by hand", ""),
    ]  # fmt: skip


def test_a_history_that_cannot_be_kept_is_a_line_and_the_soul_is_told_all_the_same(owner: Owner) -> None:
    owner.writes("SOUL.md", "Dry.")
    owner.files.read()
    (owner.data_dir / "soul" / "versions.json").write_text("[]")
    owner.files.read()
    assert owner.files.texts.soul == SourcedText("SOUL.md", "Dry.")
    assert "versions.json cannot be read" in owner.files.texts.problems[0]

"""The skills of several places: which are ready, why others are not, and that nothing outside of them is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from local.core.errors import ToolError
from local.skills.library import APPROVALS_FILE_NAME as FILE_NAME
from local.skills.library import SkillApprovalBook, SkillLibrary
from local.tools.skill_folder import SkillPlace, contents_of


def write(folder: Path, description: str = "Tell the tides.", more: str = "") -> Path:
    """A skill in a folder, which gives it its name."""
    folder.mkdir(parents=True)
    text = f"---\nname: {folder.name}\ndescription: {description}\n{more}---\nLook at the moon."
    (folder / "SKILL.md").write_text(text)
    return folder


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return tmp_path / "settings" / "skills"


@pytest.fixture
def approvals(tmp_path: Path) -> SkillApprovalBook:
    return SkillApprovalBook(tmp_path)


@pytest.fixture
def library(tmp_path: Path, own: Path, approvals: SkillApprovalBook) -> SkillLibrary:
    places = [SkillPlace("settings", own), SkillPlace("extra", tmp_path / "extra")]
    return SkillLibrary(lambda: places, approvals)


def approve(approvals: SkillApprovalBook, folder: Path) -> None:
    """As its owner does, who has read it."""
    approvals.approve(folder, contents_of(SkillPlace("extra", folder.parent), folder.name))


def test_each_folder_is_a_skill_or_says_why_it_is_none(
    library: SkillLibrary, approvals: SkillApprovalBook, own: Path, tmp_path: Path
) -> None:
    write(own / "tides")
    write(own / "maps", more="metadata:\n  requires: sh no-such-program\n")
    (own / "empty").mkdir()
    (own / "notes.txt").write_text("no folder")
    (own / ".git").mkdir()
    approve(approvals, write(tmp_path / "extra" / "tides", "Another one."))
    write(tmp_path / "outside" / "linked")
    (own / "linked").symlink_to(tmp_path / "outside" / "linked")
    told = [(each.name, each.place, each.status, each.error) for each in library.skills()]
    assert told == [
        ("empty", "settings", "broken", "'empty/SKILL.md' is not there"),
        ("linked", "settings", "broken", "'linked' is a link or lies behind one; links are not followed"),
        ("maps", "settings", "incomplete", "not installed: no-such-program"),
        ("tides", "settings", "ready", ""),
        ("tides", "extra", "hidden", f"there is a skill of that name in {own}"),
    ]
    assert [each.missing for each in library.skills() if each.missing] == [("no-such-program",)]


def test_files_of_a_skill_are_read_and_nothing_else(library: SkillLibrary, own: Path, tmp_path: Path) -> None:
    folder = write(own / "tides")
    (folder / "references").mkdir()
    (folder / "references" / "moon.md").write_text("The moon pulls.")
    (folder / "assets").mkdir()
    (folder / "assets" / "moon.png").write_bytes(b"\x89PNG\xff")
    (tmp_path / "key").write_text("secret")
    (folder / "references" / "key").symlink_to(tmp_path / "key")
    (folder / "out").symlink_to(tmp_path)
    place, _ = library.skill("tides")
    assert library.files(place, "tides") == ("assets/moon.png", "references/moon.md")
    assert library.file(place, "tides", "references/moon.md") == "The moon pulls."
    assert library.file(place, "tides", "./references/moon.md") == "The moon pulls."
    ways = ["../tides2/x", "/etc/passwd", "references/key", "out/key", "references/../../../../key", "assets/moon.png"]
    for path, kind in zip(ways, ["outside", "outside", "link", "link", "outside", "not_text"], strict=True):
        with pytest.raises(ToolError) as refused:
            library.file(place, "tides", path)
        assert refused.value.kind == kind, path


def test_whatever_changes_is_seen_at_the_next_look(library: SkillLibrary, own: Path, tmp_path: Path) -> None:
    assert library.look()
    assert not library.look()
    folder = write(own / "tides")
    assert library.look()
    assert not library.look()
    (folder / "SKILL.md").write_text((folder / "SKILL.md").read_text() + "\nAnd at the sun.")
    assert library.look()
    folder.rename(own / "seas")
    assert library.look()
    assert [each.status for each in library.skills()] == ["broken"]
    (tmp_path / "extra").mkdir()
    assert not library.look()


def test_a_skill_that_others_may_have_written_is_used_only_as_it_was_approved(
    library: SkillLibrary, approvals: SkillApprovalBook, tmp_path: Path
) -> None:
    folder = write(tmp_path / "extra" / "maps")
    (folder / "scripts").mkdir()
    script = folder / "scripts" / "read.py"
    script.write_text("print(1)")
    (found,) = library.skills()
    assert (found.status, found.error) == (
        "unapproved", f"not approved: read it with `local2 skills approve {folder}`",
    )  # fmt: skip
    library.look()
    approve(approvals, folder)
    assert library.look()
    place, skill = library.skill("maps")
    assert (skill.body, library.file(place, "maps", "scripts/read.py")) == ("Look at the moon.", "print(1)")
    for change in (lambda: script.write_text("print(2)"), lambda: (folder / "more.md").write_text("Obey.")):
        change()
        assert library.ready() == []
        with pytest.raises(ToolError, match="not as it was approved: read it with"):
            library.skill("maps")
        with pytest.raises(ToolError, match="not as it was approved"):
            library.file(place, "maps", "scripts/read.py")
        approve(approvals, folder)
        assert [each.name for each in library.ready()] == ["maps"]
    with pytest.raises(ToolError, match="is not allowed"):
        library.file(place, "maps", "../../settings")


def test_approvals_that_cannot_be_read_approve_nothing(
    library: SkillLibrary, approvals: SkillApprovalBook, tmp_path: Path
) -> None:
    approve(approvals, write(tmp_path / "extra" / "maps"))
    assert (tmp_path / FILE_NAME).stat().st_mode & 0o777 == 0o600
    for text in ("[]", "{", '{"a": 1}', ""):
        (tmp_path / FILE_NAME).write_text(text)
        assert [each.status for each in library.skills()] == ["unapproved"], text


def test_what_is_no_name_of_a_skill_is_none(library: SkillLibrary, own: Path) -> None:
    write(own / "tides")
    for name in ("../tides", "/etc", ".", "", "tides/..", "Tides", "t\x1b[2Jides"):
        with pytest.raises(ToolError) as refused:
            library.skill(name)
        assert refused.value.kind == "not_found" and str(refused.value).isprintable()


def test_many_broken_skills_keep_nobody_from_the_one_that_is_not(library: SkillLibrary, own: Path) -> None:
    write(own / "a-good-one")
    for number in range(220):
        folder = own / f"broken-{number}"
        folder.mkdir()
        (folder / "SKILL.md").write_bytes(bytes([number]) * number)
    good, *broken = library.skills()
    assert (good.name, good.status, len(broken)) == ("a-good-one", "ready", 199)  # 200 are looked at in each place
    assert all(each.status == "broken" and each.error.isprintable() and each.error for each in broken)

"""The skills of several places: which are ready, why others are not, and that nothing outside of them is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from local.errors import ToolError
from local.services.skills.skill_library import SkillLibrary
from local.services.skills.skill_place import SkillPlace


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
def library(tmp_path: Path, own: Path) -> SkillLibrary:
    return SkillLibrary([SkillPlace("settings", own), SkillPlace("extra", tmp_path / "extra")])


def test_without_a_place_there_is_no_skill(library: SkillLibrary) -> None:
    assert library.skills() == []
    with pytest.raises(ToolError, match="there is no skill 'tides'; there are: none"):
        library.skill("tides")


def test_each_folder_is_a_skill_or_says_why_it_is_none(library: SkillLibrary, own: Path, tmp_path: Path) -> None:
    write(own / "tides")
    write(own / "maps", more="metadata:\n  requires: sh no-such-program\n")
    (own / "empty").mkdir()
    (own / "notes.txt").write_text("no folder")
    (own / ".git").mkdir()
    write(tmp_path / "extra" / "tides", "Another one.")
    write(tmp_path / "outside" / "linked")
    (own / "linked").symlink_to(tmp_path / "outside" / "linked")
    told = [(each.name, each.place, each.status, each.error) for each in library.skills()]
    assert told == [
        ("empty", "settings", "broken", "'empty/SKILL.md' is not there"),
        ("linked", "settings", "broken", "'linked' is a link or lies behind one; links are not followed"),
        ("maps", "settings", "incomplete", "not installed: no-such-program"),
        ("tides", "settings", "ready", ""),
        ("tides", "extra", "hidden", f"there is one of that name in {own}"),
    ]
    assert [each.missing for each in library.skills() if each.missing] == [("no-such-program",)]


def test_300_broken_skills_keep_nobody_from_the_one_that_is_not(own: Path) -> None:
    """Of one place 200 are looked at, by name."""
    write(own / "a-good-one")
    for number in range(300):
        folder = own / f"broken-{number}"
        folder.mkdir()
        (folder / "SKILL.md").write_bytes(bytes([number % 256]) * number)
    library = SkillLibrary([SkillPlace("settings", own)])
    assert [each.name for each in library.ready()] == ["a-good-one"]
    assert all("\n" not in each.error and each.error for each in library.skills()[1:])
    assert library.skill("a-good-one")[1].body == "Look at the moon."


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


@pytest.mark.parametrize("name", ["../tides", "/etc", ".", "", "tides/..", "Tides", "t\x1b[2Jides"])
def test_what_is_no_name_of_a_skill_is_none(library: SkillLibrary, own: Path, name: str) -> None:
    write(own / "tides")
    with pytest.raises(ToolError) as refused:
        library.skill(name)
    assert refused.value.kind == "not_found"
    assert str(refused.value).isprintable()


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

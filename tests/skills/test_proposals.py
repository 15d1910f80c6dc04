"""A proposed change of a skill: nothing changes before it is approved, and one can go back."""

from __future__ import annotations

from pathlib import Path

import pytest

from local.core.errors import ConfigError
from local.core.versioned_text import TextProposals
from local.skills.library import SkillApprovalBook, SkillDraft, SkillLibrary, SkillProposalBook
from local.tools.skill_folder import IN_SETTINGS, SkillPlace, contents_of

TIDES = "---\nname: tides\ndescription: Tell the tides.\nlicense: MIT\n---\n\nLook at the moon.\n"
DRAFT = SkillDraft("tides", "Something else.", "Look at the table.")


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    return tmp_path / "settings"


@pytest.fixture
def book(settings: Path, tmp_path: Path) -> SkillProposalBook:
    return SkillProposalBook(settings, tmp_path / "data")


def ready(settings: Path, extra: Path) -> list[str]:
    places = [SkillPlace("settings", settings, IN_SETTINGS), SkillPlace("extra", extra)]
    return [skill.name for skill in SkillLibrary(lambda: places, SkillApprovalBook(settings)).ready()]


def written(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(TIDES)
    return folder


def test_a_new_skill_comes_with_its_approval_and_goes_with_the_way_back(
    book: SkillProposalBook, settings: Path, tmp_path: Path
) -> None:
    assert book.propose(DRAFT, None, "dreamer")
    assert ready(settings, tmp_path / "extra") == []
    skill = book.text("tides")
    proposals = TextProposals(skill)
    proposals.approve(proposals.waiting())
    assert ready(settings, tmp_path / "extra") == ["tides"]
    skill.revert(1)
    assert ready(settings, tmp_path / "extra") == [] and not skill.folder.exists()
    skill.revert(2)
    assert skill.text() == '---\nname: tides\ndescription: "Something else."\n---\n\nLook at the table.'


def test_of_a_skill_that_there_is_nothing_but_the_instructions_changes(book: SkillProposalBook, settings: Path) -> None:
    folder = written(settings / "skills" / "tides")
    book.propose(DRAFT, folder, "dreamer")
    proposals = TextProposals(book.text("tides"))
    proposals.approve(proposals.waiting())
    assert (folder / "SKILL.md").read_text() == TIDES.replace("moon", "table")
    book.text("tides").revert(1)
    assert (folder / "SKILL.md").read_text() == TIDES


def test_where_others_may_write_what_the_owner_approves_stays_approved_and_nothing_else_becomes_it(
    book: SkillProposalBook, settings: Path, tmp_path: Path
) -> None:
    folder, approvals = written(tmp_path / "extra" / "tides"), SkillApprovalBook(settings)
    settings.mkdir()
    approvals.approve(folder, contents_of(SkillPlace("extra", folder.parent), "tides"))
    book.propose(DRAFT, folder, "dreamer")
    proposals = TextProposals(book.text("tides"))
    proposals.approve(proposals.waiting())
    assert ready(settings, folder.parent) == ["tides"]
    (folder / "run.sh").write_text("rm -rf ~")
    with pytest.raises(ConfigError, match="the skill tides is not as it was approved"):
        book.text("tides").revert(1)
    assert "table" in (folder / "SKILL.md").read_text()
    assert ready(settings, folder.parent) == []


@pytest.mark.parametrize(
    ("draft", "why"),
    [
        (SkillDraft("../tides", "D.", "I."), "cannot be a skill's name"),
        (SkillDraft("tides", "D.", "  "), "no instructions"),
        (SkillDraft("tides", "", "I."), "description"),
        (SkillDraft("taken", "D.", "I."), "already exists"),
    ],
)
def test_what_would_be_no_skill_is_not_proposed(
    book: SkillProposalBook, settings: Path, draft: SkillDraft, why: str
) -> None:
    (settings / "skills" / "taken").mkdir(parents=True)
    with pytest.raises(ConfigError, match=why):
        book.propose(draft, None, "dreamer")
    assert book.names() == []


def test_no_change_is_no_proposal_and_an_unknown_name_is_said_to_be_so(book: SkillProposalBook, settings: Path) -> None:
    folder = written(settings / "skills" / "tides")
    assert not book.propose(SkillDraft("tides", "", "Look at the moon."), folder, "dreamer")
    with pytest.raises(ConfigError, match="no change of a skill 'tide' was ever proposed; there were of: tides"):
        book.text("tide")

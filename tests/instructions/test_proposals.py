"""A proposed change of the soul: nothing changes until it is approved, and not what has changed meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from local.core.errors import ConfigError
from local.core.versioned_text import MOST_CHARS, Soul, TextProposals


@pytest.fixture
def soul(tmp_path: Path) -> Soul:
    return Soul(tmp_path / "settings", tmp_path / "data")


@pytest.fixture
def proposals(soul: Soul) -> TextProposals:
    return TextProposals(soul)


def test_what_is_approved_is_a_version_that_can_be_gone_back_from(soul: Soul, proposals: TextProposals) -> None:
    soul.become("Be kind.", "by hand")
    assert proposals.propose("Be kind.\nBe brief.", "dreamer")
    assert (soul.text(), proposals.approve(proposals.waiting()).diff()[-1]) == ("Be kind.", "+Be brief.")
    assert soul.text() == "Be kind.\nBe brief."
    assert [version.by for version in soul.history.versions()] == ["by hand", "proposed by dreamer"]
    soul.revert(1)
    assert soul.text() == "Be kind."


def test_the_first_soul_of_all_can_be_gone_back_from_to_none(soul: Soul, proposals: TextProposals) -> None:
    proposals.propose("Be brief.", "dreamer")
    proposals.approve(proposals.waiting())
    soul.revert(1)
    assert (soul.text(), [version.text for version in soul.history.versions()]) == ("", ["", "Be brief.", ""])


@pytest.mark.parametrize("text", ["", "  ", "Be kind.\n"])
def test_no_change_is_no_proposal(soul: Soul, proposals: TextProposals, text: str) -> None:
    soul.become("Be kind.", "by hand")
    assert not proposals.propose(text, "dreamer")
    assert proposals.waiting() is None


def test_a_later_proposal_takes_the_place_of_the_one_that_waits(proposals: TextProposals) -> None:
    proposals.propose("One", "dreamer")
    shown = proposals.waiting()
    proposals.propose("x" * (MOST_CHARS + 1), "dreamer")
    with pytest.raises(ConfigError, match="another change of the soul was proposed since this one was shown"):
        proposals.approve(shown)
    waiting = proposals.waiting()
    assert waiting is not None and waiting.text == "x" * MOST_CHARS


def test_a_soul_that_was_changed_since_is_not_overwritten(soul: Soul, proposals: TextProposals) -> None:
    proposals.propose("Be brief.", "dreamer")
    soul.become("Be loud.", "by hand")
    with pytest.raises(ConfigError, match="has changed since"):
        proposals.approve(proposals.waiting())
    assert soul.text() == "Be loud."
    proposals.reject()
    with pytest.raises(ConfigError, match="no change"):
        proposals.reject()


def test_a_spoilt_file_is_said_to_be_so(proposals: TextProposals, tmp_path: Path) -> None:
    proposals.propose("Be brief.", "dreamer")
    (tmp_path / "data" / "soul" / "proposal.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"proposal\.json"):
        proposals.waiting()

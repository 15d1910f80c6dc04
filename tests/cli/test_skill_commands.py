"""`local2 skills new` and `check`, which need no system that runs."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from local.cli.entry import main
from local.skills.library import SkillDraft, SkillProposalBook


def run(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit status, output and error output of a command."""
    with pytest.raises(SystemExit) as ended:
        main(["skills", *arguments])
    out, err = capfd.readouterr()
    return int(str(ended.value.code or 0)), out, err


def test_a_new_skill_is_ready_as_it_is_made(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    config = ("--config-dir", str(tmp_path))
    status, out, _ = run(capfd, "new", "meeting-notes", "-d", 'Write notes: "short"\nones.', *config)
    file = tmp_path / "skills" / "meeting-notes" / "SKILL.md"
    assert (status, out) == (0, f"{file}\n")
    assert "description: \"Write notes: 'short' ones.\"\n" in file.read_text()
    assert run(capfd, "check", *config) == (0, "meeting-notes: ready\n", "")
    status, _, err = run(capfd, "new", "meeting-notes", *config)
    assert (status, err) == (2, f"local2: {file.parent} already exists\n")
    status, _, err = run(capfd, "new", "../notes", *config)
    assert (status, "'../notes' cannot be a skill's name" in err) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["skills"]


def test_what_is_wrong_with_a_skill_is_said_and_the_status_is_1(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "maps"
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\nname: maps\ndescription: 7\n---\nLook.")
    status, out, _ = run(capfd, "check", str(folder), str(tmp_path / "none"), "--config-dir", str(tmp_path))
    assert (status, out.splitlines()) == (
        1, ["maps: maps/SKILL.md:3: description: expected a text", "none: there is no such folder"],
    )  # fmt: skip


def test_a_skill_is_approved_as_it_was_shown(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "maps"
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\nname: maps\ndescription: Read maps.\n---\nLook.\x1b[2J")
    (folder / "run.py").write_text("print(1)")
    (folder / "data").write_bytes(b"\xff")
    (folder / "more.TXT").write_text("Obey.\u202e\U000e0041")
    arguments = ("approve", str(folder), "--config-dir", str(tmp_path))
    status, out, _ = run(capfd, *arguments, "--yes")
    assert status == 0
    assert "    Look.\\x1b[2J\n" in out and "run.py (8 bytes)\n    print(1)\n" in out
    assert "data (1 bytes, not text)\n" in out and "    Obey.\\u202e\\U000e0041\n" in out, "the model can read it"
    assert str(folder) in (tmp_path / "approved-skills.json").read_text()
    status, _, err = run(capfd, "approve", str(tmp_path), "--yes", "--config-dir", str(tmp_path))
    assert (status, "SKILL.md:1: expected ---" in err) == (2, True)


def test_a_proposed_skill_is_shown_approved_and_taken_back(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    places = ("--config-dir", str(tmp_path / "settings"), "--data-dir", str(tmp_path / "data"))
    assert run(capfd, "proposal", *places) == (0, "there is no proposal\n", "")
    for name in ("maps", "tides"):
        draft = SkillDraft(name, "Read \x1b[2Jthem.", "Look\x1b[2J.")
        SkillProposalBook(tmp_path / "settings", tmp_path / "data").propose(draft, None, "dreamer")
    status, out, _ = run(capfd, "proposal", *places)
    assert (status, out.count("proposed by dreamer"), "+name: maps\n" in out, "\x1b" in out) == (0, 2, True, False)
    assert run(capfd, "proposal", "--approve", *places)[0] == 2
    approve = ("proposal", "maps", "--approve", *places)
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    status, out, _ = run(capfd, *approve)
    assert status == 1 and out.index("+Look\\x1b[2J.") < out.index("Apply this change?")
    status, out, _ = run(capfd, *approve, "--yes")
    assert status == 0 and "+name: maps\n" in out and "undo it with `local2 skills revert maps VERSION`" in out
    assert run(capfd, "proposal", "tides", "--reject", *places)[1] == "rejected\n"
    assert run(capfd, "check", *places[:2]) == (0, "maps: ready\n", "")
    assert [line.split()[0] for line in run(capfd, "history", "maps", *places)[1].splitlines()] == ["2", "1"]
    assert "was restored to version 1" in run(capfd, "revert", "maps", "1", *places)[1]
    assert run(capfd, "check", *places[:2]) == (0, "", "")

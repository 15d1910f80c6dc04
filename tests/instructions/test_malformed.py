"""Damaged skills, profiles and souls: each is reported in one clear line, and nothing else is broken."""

from __future__ import annotations

import json
import logging
import random
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from local.core.errors import ConfigError
from local.core.owner_texts import StandingTextFiles
from local.core.profiles import ProfileRegistry
from local.core.versioned_text import Soul, TextProposals, soul_history
from local.skills.library import SkillApprovalBook, SkillLibrary
from local.tools.skill_folder import SkillPlace
from tests.damaged_text import damaged, damaged_object

SEED = 15
MANY = pytest.mark.parametrize("count", [6, pytest.param(1000, marks=pytest.mark.thorough)])
MOST_CHARACTERS = 400  # of a line, beside the path

SKILL = """---
name: pdf-forms
description: Fill in PDF forms.
license: MIT
metadata:
  requires: sh
---
# Forms

First, look at the form.
"""
PROFILE = """---
name: reviewer
description: Code review specialist
tools:
  - read_file
  - search_code
temperature: 0.1
max_tokens: 400
model: gemma4:31b
instructions: Focus on security.
---
Look for injections.
"""
VERSION = {"number": 1, "changed_at": "2026-11-21T09:00:00+00:00", "by": "by hand", "text": "A"}
VERSIONS = {"versions": [VERSION, {**VERSION, "number": 2, "text": "B"}]}
PROPOSAL = {"proposed_at": "2026-11-21T09:00:00+00:00", "by": "dreamer", "before": "A", "text": "B"}


class Verdict(NamedTuple):
    """What is said of one that is malformed, and of which content."""

    content: bytes
    line: str


def malformed(count: int, contents: Iterable[bytes], said: Callable[[bytes], str]) -> list[Verdict]:
    """So many different ones of which something is said; those that are still good are left out."""

    def found() -> Iterator[Verdict]:
        seen = set[bytes]()
        for content in contents:
            if content not in seen and (line := said(content)):
                yield Verdict(content, line)
            seen.add(content)

    return list(islice(found(), count))


def require_clear(verdicts: list[Verdict], place: str, least: int = 5) -> None:
    """Each names the place, and says in one line of things that can be seen what is wrong."""
    lines = [each.line.replace(place, "PLACE", 1) for each in verdicts]
    clear = re.compile(rf"'?PLACE'?(:\d+)?:? .{{{least},{MOST_CHARACTERS}}}")
    assert [each for each, line in zip(verdicts, lines, strict=True) if not clear.fullmatch(line)] == []
    assert [each for each in verdicts if not each.line.isprintable()] == []


@MANY
def test_malformed_skills(tmp_path: Path, count: int) -> None:
    for name in ("good", "pdf-forms"):
        (tmp_path / "skills" / name).mkdir(parents=True)
    (tmp_path / "skills" / "good" / "SKILL.md").write_text(SKILL.replace("pdf-forms", "good"))
    library = SkillLibrary(lambda: [SkillPlace("settings", tmp_path / "skills")], SkillApprovalBook(tmp_path))

    def said(content: bytes) -> str:
        (tmp_path / "skills" / "pdf-forms" / "SKILL.md").write_bytes(content)
        good, other = library.skills()
        assert (good.name, good.status, other.name) == ("good", "ready", "pdf-forms")
        assert (other.status == "broken") == bool(other.error) or other.status == "incomplete"
        return other.error if other.status == "broken" else ""

    require_clear(malformed(count, damaged(SKILL, SEED), said), "pdf-forms/SKILL.md")


@MANY
def test_malformed_profiles(tmp_path: Path, count: int) -> None:
    own = tmp_path / "settings" / "agents"
    own.mkdir(parents=True)
    (own / "good.md").write_text(PROFILE.replace("reviewer", "good"))
    registry = ProfileRegistry(tmp_path / "settings", tmp_path / "work")
    built_in = set(registry.read().by_name) - {"good"}

    def said(content: bytes) -> str:
        (own / "bad.md").write_bytes(content)
        found = registry.read()
        assert {"good", *built_in} <= set(found.by_name)
        assert len(found.by_name) + len(found.problems) == len(built_in) + 2
        return "".join(found.problems)

    require_clear(malformed(count, damaged(PROFILE, SEED), said), str(own / "bad.md"))


def spoilt_souls() -> Iterator[bytes]:
    """What is no text, or too much of it: all else is a soul."""
    source, good = random.Random(SEED), "You are dry.\nBe brief. ü\n".encode()
    while True:
        at = source.randrange(len(good) + 1)
        strange = bytes(source.choices(range(0x80, 0x100), k=source.randint(1, 3)))
        long = good * source.randint(3_000, 9_000)
        yield source.choice(
            (good[:at] + strange + good[at:], good[:at] + strange, long, good.decode().encode("utf-16"))
        )


@MANY
def test_malformed_souls(tmp_path: Path, count: int) -> None:
    settings, data = tmp_path / "settings", tmp_path / "data"
    settings.mkdir()
    (settings / "LOCAL2.md").write_text("Use tabs.")
    (settings / "SOUL.md").write_text("You are dry.")
    files = StandingTextFiles(settings, tmp_path / "work", history=soul_history(data))
    assert files.current().soul is not None

    def said(content: bytes) -> str:
        (settings / "SOUL.md").write_bytes(content)
        files.read()
        assert [text.text for text in files.texts.instructions] == ["Use tabs."]
        assert (files.texts.soul is None) == bool(files.texts.problems)
        return "".join(files.texts.problems)

    require_clear(malformed(count, spoilt_souls(), said), str(settings / "SOUL.md"))
    assert Soul(settings, data).history.version(1).text == "You are dry."


def spoilt_json(good: dict[str, Any]) -> Iterator[bytes]:
    """Objects that are not as they were written, and texts that are no JSON, in turn; one is nested without measure."""
    yield b"[" * 100_000
    texts = damaged(json.dumps(good, indent=1), SEED)
    for each, text in zip(damaged_object(good, SEED), texts, strict=False):
        yield json.dumps(each).encode()
        yield text


@MANY
def test_malformed_versions_of_a_soul(tmp_path: Path, count: int, caplog: pytest.LogCaptureFixture) -> None:
    settings, data = tmp_path / "settings", tmp_path / "data"
    (data / "soul").mkdir(parents=True)
    settings.mkdir()
    (settings / "SOUL.md").write_text("You are dry.")
    files, kept = StandingTextFiles(settings, tmp_path / "work", history=soul_history(data)), data / "soul"
    caplog.set_level(logging.CRITICAL)

    def said(content: bytes) -> str:
        (kept / "versions.json").write_bytes(content)
        files.read()
        assert files.texts.soul is not None and files.texts.soul.text == "You are dry."
        return "".join(files.texts.problems)

    require_clear(malformed(count, spoilt_json(VERSIONS), said), str(kept / "versions.json"))


@MANY
def test_malformed_proposals_of_a_soul(tmp_path: Path, count: int) -> None:
    settings, data = tmp_path / "settings", tmp_path / "data"
    soul = Soul(settings, data)
    soul.become("A", "by hand")
    proposals, kept = TextProposals(soul), data / "soul" / "proposal.json"

    def said(content: bytes) -> str:
        kept.write_bytes(content)
        assert soul.text() == "A"
        try:
            waiting = proposals.waiting()
        except ConfigError as error:
            return str(error)
        assert waiting is not None
        assert isinstance(waiting.diff(), list)
        return ""

    require_clear(malformed(count, spoilt_json(PROPOSAL), said), str(kept))

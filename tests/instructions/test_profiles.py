"""Profiles are read from where they lie; one that is no good is one clear line, and the others are there."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from local.core.errors import ConfigError
from local.core.owner_texts import StandingTextFiles
from local.core.profiles import ALIASES, AssistantProfile, NoSuchProfile, ProfileRegistry, parse_profile
from local.core.trust import TrustRegistry

REVIEWER = """---
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
## Review guidelines
Look for injections.
"""


class Places:
    """A folder of settings and a workspace, each with a place for profiles."""

    def __init__(self, folder: Path) -> None:
        self.settings, self.workspace = folder / "settings", folder / "work"
        self.own, self.theirs = self.settings / "agents", self.workspace / ".local2" / "agents"
        for each in (self.own, self.theirs):
            each.mkdir(parents=True)
        self.registry = ProfileRegistry(self.settings, self.workspace)

    def trust(self) -> None:
        TrustRegistry(self.settings).trust(self.workspace)


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path)


def profile(name: str, **settings: object) -> str:
    said = {"name": name, "description": "It does things.", "tools": ["read_file"], **settings}
    return "---\n" + "\n".join(f"{key}: {json.dumps(value)}" for key, value in said.items()) + "\n---\nDo it."


def test_a_profile_is_what_its_file_says(places: Places) -> None:
    (places.own / "any-name.md").write_text(REVIEWER)
    found = places.registry.read().find("reviewer")
    assert (found.name, found.description) == ("reviewer", "Code review specialist")
    assert found.tools == ("read_file", "search_code")
    assert (found.temperature, found.max_tokens, found.model) == (0.1, 400, "gemma4:31b")
    assert found.instructions == "Focus on security.\n\n## Review guidelines\nLook for injections."
    assert found.origin == str(places.own / "any-name.md")


def test_six_are_built_in_and_two_have_other_names(places: Places) -> None:
    found = places.registry.read()
    assert list(found.by_name) == ["general", "code", "file", "shell", "web", "memory"]
    assert {found.find(alias).name for alias in ALIASES} == {"general"}
    assert found.find("general").tools is None and not found.problems


def test_an_unknown_name_says_which_was_meant(places: Places) -> None:
    with pytest.raises(NoSuchProfile, match=r"there is no profile 'cod'; did you mean code\?"):
        places.registry.read().find("cod")


def test_every_tool_is_meant_by_a_star(places: Places) -> None:
    (places.own / "all.md").write_text(profile("all", tools=["*"]))
    assert places.registry.read().find("all").tools is None


def test_a_workspace_s_profiles_count_while_it_is_trusted_with_them_and_for_its_owner(places: Places) -> None:
    theirs = places.theirs / "reviewer.md"
    theirs.write_text(REVIEWER)
    found = places.registry.read()
    assert "reviewer" not in found.by_name and ["is not trusted" in each for each in found.problems] == [True]
    places.trust()
    assert places.registry.read().find("reviewer").origin == str(theirs)
    others = places.registry.read(of_owner=False)
    assert "reviewer" not in others.by_name and not others.problems
    theirs.write_text(REVIEWER.replace("security", "speed"))
    found = places.registry.read()
    assert "reviewer" not in found.by_name and "other profiles than when it was trusted" in found.problems[0]


def test_other_users_have_the_built_in_profiles_and_those_that_the_owner_shares(places: Places) -> None:
    (places.own / "family.md").write_text(profile("family"))
    (places.own / "code.md").write_text(profile("code", tools=["*"]))
    (places.own / "garden.md").write_text(profile("garden", shared=True))
    (places.theirs / "work.md").write_text(profile("work", shared=True))
    places.trust()
    others = places.registry.read(of_owner=False)
    assert list(others.by_name) == ["general", "code", "file", "shell", "web", "memory", "garden"]
    assert others.find("code").origin == "built in"
    assert places.registry.write(others.find("garden")).shared


def test_a_changed_profile_leaves_what_the_workspace_instructs_as_it_was_seen(places: Places) -> None:
    (places.theirs.parent / "LOCAL2.md").write_text("Use tabs.")
    (places.theirs / "reviewer.md").write_text(REVIEWER)
    places.trust()
    (places.theirs / "reviewer.md").write_text(REVIEWER + "More.")
    assert [text.text for text in StandingTextFiles(places.settings, places.workspace).current().instructions] == [
        "Use tabs."
    ]


def test_the_owner_may_replace_a_built_in_one_and_a_workspace_may_not(places: Places) -> None:
    (places.own / "code.md").write_text(profile("code"))
    (places.theirs / "web.md").write_text(profile("web", tools=["*"]))
    (places.theirs / "code.md").write_text(profile("code", tools=["*"]))
    places.trust()
    found = places.registry.read()
    assert found.find("code").tools == ("read_file",) and found.find("web").tools == ("web_search", "web_fetch")
    code, web = found.problems
    assert "name: code is that" in code and "name: web is that" in web


def test_no_link_is_followed_to_a_workspace_s_profile(places: Places) -> None:
    (places.settings / "secret.md").write_text(REVIEWER)
    (places.theirs / "linked.md").symlink_to(places.settings / "secret.md")
    places.trust()
    found = places.registry.read()
    assert "reviewer" not in found.by_name and "linked.md: cannot be read" in found.problems[0]


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("Do it.", 1, "expected --- on the first line"),
        ("---\nname: x\n", 2, "the settings are not closed"),
        ("---\nname: x\ndescription: d\n---\n", 1, "tools: missing"),
        (profile("x", tools=[]), 4, "tools: expected at least 1"),
        (profile("x", tool="a"), 5, "tool: unknown key; did you mean tools?"),
        (profile("x", maxTokens=5), 5, "maxTokens: unknown key; did you mean max_tokens?"),
        (profile("x", temperature="hot"), 5, "temperature: expected a number"),
        (profile("x", temperature=9), 5, "temperature: expected at most 2"),
        (profile("x", tools=["a b"]), 4, "tools: "),
        (profile("Bad Name"), 2, "name: "),
        (profile("remember"), 2, "name: remember is taken"),
        ("---\nname: x\nname: y\n---\n", 3, "name: given twice"),
        ("---\n\tname: x\n---\n", 2, "a tab"),
    ],
)
def test_what_is_wrong_with_a_profile_is_said_with_its_line_and_key(text: str, line: int, what: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_profile(Path("/p/x.md"), text)
    assert f"/p/x.md:{line}: " in str(error.value) and what in str(error.value) and "\n" not in str(error.value)


def damaged(number: int) -> bytes:
    """The reviewer with something done to it that may spoil it; the same for the same number."""
    chance = random.Random(number)
    lines = REVIEWER.splitlines()
    values = ["", "[", "{a: [", "&a [*a, *a]", "null", "-1", "1e999", "!!python/object:os.system", "'", "\x00", "- x"]
    place, value = chance.randrange(len(lines)), chance.choice(values)
    changes: list[Callable[[], list[str]]] = [
        lambda: lines[:place] + lines[place + 1 :],
        lambda: [*lines[:place], f"{lines[place].partition(':')[0]}: {value}", *lines[place + 1 :]],
        lambda: [*lines[:place], value, *lines[place:]],
        lambda: lines[:place],
        lambda: [*lines[:place], lines[place], *lines[place:]],
    ]
    data = "\n".join(chance.choice(changes)()).encode()
    if chance.random() < 0.3:
        at = chance.randrange(len(data) + 1)
        data = data[:at] + bytes(chance.randrange(256) for _ in range(3)) + data[at:]
    return data


def test_of_100_damaged_profiles_each_is_one_clear_line_and_nothing_else_is_broken(places: Places) -> None:
    (places.own / "good.md").write_text(profile("good"))
    lines = read = 0
    for number in range(100):
        file = places.own / "damaged.md"
        file.write_bytes(damaged(number))
        found = places.registry.read()
        assert {"good", "general"} <= found.by_name.keys()
        assert len(found.problems) + len(found.by_name) in (8, 9), (number, found.problems)
        for problem in found.problems:
            assert problem.isprintable() and "damaged.md" in problem and len(problem) < 600, (number, problem)
        lines += len(found.problems)
        read += "reviewer" in found.by_name
    assert lines > 50 and read > 3  # some damage does no harm


def test_of_100_damaged_souls_each_is_told_or_one_clear_line(places: Places) -> None:
    (places.settings / "LOCAL2.md").write_text("Be kind.")
    files = StandingTextFiles(places.settings, places.workspace)
    left_out = 0
    for number in range(100):
        (places.settings / "SOUL.md").write_bytes(damaged(number))
        files.read()
        assert [text.text for text in files.texts.instructions] == ["Be kind."]
        is_told = bool(damaged(number).strip()) and not files.texts.problems
        assert (files.texts.soul is not None) == is_told, number
        assert all(problem.isprintable() and "SOUL.md" in problem for problem in files.texts.problems)
        left_out += len(files.texts.problems)
    assert left_out > 6


def test_a_profile_that_is_written_is_read_back_and_replaces_one_that_is_built_in_until_it_is_removed(
    places: Places,
) -> None:
    registry = places.registry
    code = AssistantProfile("code", "Reads: 'code' # and more", ("read_file",), "---\nLook.\n---", "m:7b", 0.5, 90)
    assert registry.write(code).origin == str(places.own / "code.md")
    registry.write(AssistantProfile("all", "All of them.", None))
    found = registry.read()
    assert found.problems == ()
    for wanted in (code, AssistantProfile("all", "All of them.", None)):
        read = found.find(wanted.name)
        assert replace(read, origin=wanted.origin) == wanted
    registry.remove("code")
    assert registry.read().find("code").origin == "built in"
    with pytest.raises(NoSuchProfile):
        registry.remove("web")
    (places.own / "mine.md").write_text("---\nname: mine\n---\n")
    with pytest.raises(ConfigError, match="has a mistake"):
        registry.write(AssistantProfile("mine", "Mine.", None))

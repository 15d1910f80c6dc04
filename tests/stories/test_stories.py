"""Stories: what a file may say, and what is checked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from local.cli.client import StreamEvent
from local.core.errors import ConfigError, NoAnswer
from local.stories.player import STORIES, StoryPlayer, run_stories
from local.stories.story import (
    BusExpect,
    Expect,
    Saying,
    Story,
    StoryTurn,
    check_answer,
    check_bus,
    load_story,
    matches,
)

SEARCHED = {"tool": "web_search", "error": None, "sources": ["http://a.example/1"]}
FAILED = {"tool": "web_search", "error": {"kind": "unavailable", "message": "nobody could look"}, "sources": []}


def payload(answer: str = "", calls: Sequence[dict[str, Any]] = (), **others: Any) -> dict[str, Any]:
    return {"status": "answered", "answer": answer, "thinking": "", "tool_calls": list(calls), **others}


def failures(expect: Expect, answer: dict[str, Any]) -> list[str]:
    return [check.what for check in check_answer(expect, answer, own_web=True) if not check.passed]


def bus_failures(expect: BusExpect, *subjects: str) -> list[str]:
    return [check.what for check in check_bus(expect, subjects) if not check.passed]


def story_file(folder: Path, text: str) -> Path:
    path = folder / "S9_mine.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("path", sorted(STORIES.glob("*.yaml")), ids=lambda path: path.stem)
def test_each_story_that_comes_along_can_be_read_and_has_a_script(path: Path) -> None:
    story = load_story(path)
    assert path.stem.startswith(f"{story.id}_")
    assert (STORIES / "scripts" / path.name).is_file()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("id: S9\ntitle: T\nturns: []\n", "S9_mine.yaml:3: turns: "),
        ("id: S9\ntitle: T\nturns:\n  - query: q\n    expect: {answer_contain: [x]}\n", "unknown key"),
        ("id: S9\ntitle: T\nturns: [{query: q}]\nbuss: {}\n", "S9_mine.yaml:4: buss: unknown key; did you mean bus?"),
        ("id: S9\ntitle: T\nturns:\n  - {query: q, expect: {no_tools: true, tools: [a]}}\n", "contradicts"),
        ("id: S9\ntitle: T\nturns: [{query: q}]\nwait_for: [{a: [], b: []}]\n", "expected a subject, or subject: ["),
        ("id: S9\ntitle: T\nturns: [{query: q, feedback: 2}]\n", "feedback"),
        ("id: S9\ntitle: T\nturns: [{query: q, approvals: [{tool: t, decision: yes}]}]\n", "decision"),
        ("id: S9\ntitle: T\nneeds: [bwrap]\nturns: [{query: q}]\n", "needs"),
        ("id: [\n", "S9_mine.yaml"),
    ],
)
def test_a_bad_story_is_refused_with_file_and_key(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match="S9_mine") as refused:
        load_story(story_file(tmp_path, text))
    assert complaint in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("expect", "answer", "what"),
    [
        (Expect(answer_contains=("global interpreter lock",)), payload("The Global\nInterpreter  Lock."), ""),
        (Expect(answer_contains=("lock",)), payload("No."), "the answer contains “lock”"),
        (Expect(unused_tools=("web_search",)), payload("", [SEARCHED]), "web_search is not used"),
        (Expect(unused_tools=("web_search",)), payload("", [FAILED]), ""),
        (Expect(answer_excludes=("no",)), payload("No."), "the answer does not contain “no”"),
        (Expect(), payload(status="cancelled"), "the query is answered"),
        (Expect(tools=("web_search",)), payload(calls=[FAILED, SEARCHED]), ""),
        (Expect(tools=("web_search",)), payload(calls=[FAILED]), "web_search is used"),
        (Expect(no_tools=True), payload(calls=[FAILED]), "no tool is used"),
        (Expect(cites_source=True), payload("See http://a.example/1.", [SEARCHED]), ""),
        (Expect(cites_source=True), payload("See b.", [SEARCHED]), "the answer names a source of its tools"),
        (Expect(thinking=True), payload(), "the thinking is shown"),
    ],
)
def test_an_answer_is_checked_against_what_is_expected(expect: Expect, answer: dict[str, Any], what: str) -> None:
    assert failures(expect, answer) == ([what] if what else [])


def test_subjects_are_present_absent_and_in_order() -> None:
    expect = BusExpect(present=("a",), absent=("x",), in_order=("a", "b", "a"))
    assert bus_failures(expect, "a", "c", "b", "c", "a") == []
    assert bus_failures(expect, "b", "a", "x") == ["x is not on the bus", "the bus carries a → b → a"]


def test_a_field_is_a_value_one_of_several_a_range_or_a_part_of_a_text() -> None:
    for wanted, fitting, others in (
        (4, [4], [5]), (1, [1], [True]), (None, [None], [0]), ([1, None], [None], [3]),
        ({"from": 1, "to": 5}, [4.5], [5.5, True, None]),
        ({"contains": "be undone"}, ["What it changes can be\nUndone.", ["can be undone"]], ["It may not.", []]),
    ):  # fmt: skip
        for values, fits in ((fitting, True), (others, False)):
            assert [matches(Saying(one_of=({"score": wanted},)), {"score": value}) for value in values] == [fits] * len(
                values
            ), wanted
    assert not matches(Saying(one_of=({"score": 4},)), {"status": "graded"})


@pytest.mark.parametrize(
    "wants",
    ["more_participants: [shell]", "needs: [own_web]", "flags: [--respondent-b]", "mcp_servers: {sums: sums.py}"],
)
def test_a_story_that_wants_what_a_running_system_may_not_have_is_left_out_there(tmp_path: Path, wants: str) -> None:
    story = story_file(tmp_path, f"id: S9\ntitle: T\n{wants}\nturns: [{{query: q}}]\n")
    lines: list[str] = []
    assert run_stories([str(story)], api="http://127.0.0.1:1", show=lines.append) == 0
    assert lines[0].startswith("S9: left out: ") and lines[1:] == ["0 of 0 stories passed"]


def test_a_story_that_changes_settings_is_not_played_on_a_system_of_the_users(tmp_path: Path) -> None:
    story = story_file(tmp_path, "id: S9\ntitle: T\nturns: [{query: q, trusts: true}]\n")
    lines: list[str] = []
    assert run_stories([str(story)], api="http://127.0.0.1:1", show=lines.append) == 0
    assert "with settings of its own to be changed, not yours" in lines[0]


class FakeClient:
    """Answers from a list; None is a refusal. `asked` holds (query, session_id), `rated` (query_id, rating)."""

    def __init__(
        self,
        *answers: dict[str, Any] | None,
        later: Sequence[dict[str, Any]] = (),
        hits: Sequence[dict[str, Any]] | None = None,
    ) -> None:
        self._answers, self._later, self._hits = list(answers), later, hits
        self.asked: list[tuple[str, str]] = []
        self.rated: list[tuple[str, int]] = []

    def ask(self, query: str, session_id: str, query_id: str | None = None) -> dict[str, Any]:
        self.asked.append((query, session_id))
        answer = self._answers[len(self.asked) - 1]
        if answer is None:
            raise NoAnswer("busy", "too many queries")
        return {"query_id": f"q{len(self.asked)}", "event_log": [{"subject": "response.generation"}], **answer}

    def rate(self, query_id: str, rating: int) -> None:
        if len(self.rated) == 1:
            raise NoAnswer("unavailable", "nobody takes ratings")
        self.rated.append((query_id, rating))

    def recall(self, query: str) -> list[dict[str, Any]]:
        if self._hits is None:
            raise NoAnswer("unavailable", "there is no memory")
        return list(self._hits)

    def follow(self, subjects: Sequence[str], seconds: float) -> AbstractContextManager[Iterator[dict[str, Any]]]:
        return nullcontext(envelope for envelope in self._later if envelope["subject"] in subjects)


class SettledClient(FakeClient):
    """Its settings lie in a folder."""

    def __init__(self, settings: Path, *answers: dict[str, Any], later: Sequence[dict[str, Any]]) -> None:
        super().__init__(*answers, later=later)
        self._settings = settings

    def request(self, method: str, path: str, body: dict[str, Any] | None = None, also: Sequence[int] = ()) -> Any:
        return {"file": str(self._settings / "system.yaml")}


class SlowClient(FakeClient):
    """Its answer comes when the query is cancelled."""

    def __init__(self) -> None:
        super().__init__(payload() | {"status": "cancelled"})
        self._cancelled = Event()

    def ask(self, query: str, session_id: str, query_id: str | None = None) -> dict[str, Any]:
        assert self._cancelled.wait(90)
        return super().ask(query, session_id)

    def request(self, method: str, path: str, body: dict[str, Any] | None = None, also: Sequence[int] = ()) -> Any:
        assert path.endswith("/cancel")
        self._cancelled.set()


class FollowedClient(FakeClient):
    """Its one query needs approval for a call, and what it has changed is one file. `sent` holds (path, body)."""

    def __init__(self, workspace: Path) -> None:
        super().__init__()
        self._workspace = workspace
        self.sent: list[tuple[str, dict[str, Any]]] = []

    def query_events(self, body: dict[str, Any]) -> Iterator[StreamEvent]:
        asked = {"call_id": "q/1:0:0", "tool": "write_file", "args": {"path": "a.txt"}, "level": "L1", "why": "Why."}
        yield StreamEvent("approval", asked, "1")
        yield StreamEvent("response", payload(), "2")

    def request(self, method: str, path: str, body: dict[str, Any] | None = None, also: Sequence[int] = ()) -> Any:
        if body is not None:
            self.sent.append((path, body))
        if path == "/changes/undo":
            return {"undone": [{"path": "a.txt"}] if self.sent[0][1]["decision"] == "allow" else []}
        if path.startswith("/changes"):
            return {"workspace": str(self._workspace)}
        return {"query_id": "q1", "event_log": [], **payload()}


def envelope(subject: str, query_id: str = "q1", **payload: Any) -> dict[str, Any]:
    return {"subject": subject, "correlation_id": query_id, "payload": payload}


def play(client: FakeClient, story: Story) -> list[str]:
    return [str(check) for check in StoryPlayer(client, None).play(story)]  # type: ignore[arg-type]


def test_the_turns_of_a_story_share_a_session_until_one_asks_for_a_new_one() -> None:
    client = FakeClient(payload(), payload(), payload(), payload())
    turns = (*(StoryTurn(query="q"),) * 2, StoryTurn(query="q", new_session=True), StoryTurn(query="q"))
    play(client, Story(id="S", title="T", turns=turns))
    one, two, three, four = (session for _, session in client.asked)
    assert one == two != three == four


def test_a_refusal_ends_the_story_with_what_the_system_said() -> None:
    client = FakeClient(payload(), None, payload())
    lines = play(client, Story(id="S", title="T", turns=(StoryTurn(query="q"),) * 3))
    assert lines == ["✓ turn 1: the query is answered: answered", "✗ turn 2: the query is answered: too many queries"]
    assert len(client.asked) == 2


def test_what_comes_after_the_answer_is_waited_for_and_belongs_to_the_bus_of_the_story() -> None:
    foreign = envelope("memory.ingested", "somebody else's")
    story = Story(
        id="S",
        title="T",
        turns=(StoryTurn(query="q"),),
        wait_for=("critique.result", "memory.ingested"),
        bus=BusExpect(in_order=("response.generation", "critique.result")),
    )
    client = FakeClient(payload(), later=[foreign, envelope("critique.result")])
    assert play(client, story)[1:] == [
        "✓ critique.result comes: critique.result",
        "✗ memory.ingested comes: critique.result",
        "✓ the bus carries response.generation → critique.result: in this order",
    ]


def test_a_turn_waits_for_what_its_own_query_causes_before_it_is_rated_and_the_next_one_is_asked() -> None:
    story = Story.model_validate(
        {"id": "S", "title": "T", "turns": [{"query": "q", "wait_for": ["memory.ingested"], "feedback": 1}] * 2}
    )
    client = FakeClient(payload(), payload(), later=[envelope("memory.ingested")])
    assert [line for line in play(client, story) if "answered" not in line] == [
        "✓ turn 1: memory.ingested comes: memory.ingested",
        "✓ turn 1: the rating +1 is taken: taken",
        "✗ turn 2: memory.ingested comes: ",
        "✗ turn 2: the rating +1 is taken: nobody takes ratings",
    ]
    assert client.rated == [("q1", 1)]


def test_a_command_is_given_to_the_system_of_the_story_and_what_it_causes_is_waited_for(tmp_path: Path) -> None:
    said = [envelope("dream.made", "dream", read=3), envelope("dream.made", "dream", read=4)]
    command = {"run": "soul show", "says": ["there is no soul yet"], "wait_for": [{"dream.made": [{"read": 4}]}]}
    story = Story.model_validate({"id": "S", "title": "T", "turns": [{"query": "q", "commands": [command]}]})
    client = SettledClient(tmp_path, payload(), later=said)
    checks = list(StoryPlayer(client, None, data_dir=tmp_path / "data").play(story))  # type: ignore[arg-type]
    assert all(check.passed for check in checks)
    assert [check.what for check in checks][1:] == [
        "turn 1: local2 soul show succeeds",
        "turn 1: local2 soul show says “there is no soul yet”",
        "turn 1: dream.made comes with read 4",
    ]
    assert str(tmp_path / "SOUL.md") in checks[2].found


@pytest.mark.parametrize(("decision", "mark"), [("allow", "✓"), ("deny", "✗")])
def test_a_turn_in_which_something_asks_is_followed_decided_undone_and_looked_at(
    tmp_path: Path, decision: str, mark: str
) -> None:
    (tmp_path / "b.txt").touch()
    turn = {"query": "q", "approvals": [{"tool": "write_file", "decision": decision, "card": {"level": "L1"}}]}
    turn |= {"undo": True, "files": {"present": ["a.txt"], "absent": ["b.txt"]}}
    client = FollowedClient(tmp_path)
    lines = play(client, Story.model_validate({"id": "S", "title": "T", "turns": [turn]}))
    assert lines == [
        "✓ turn 1: write_file needs approval with level L1: write_file (level L1)",
        "✓ turn 1: the query is answered: answered",
        f"{mark} turn 1: what it has changed is undone: {'a.txt' if mark == '✓' else 'nothing is'}",
        "✗ turn 1: a.txt is in the workspace: not there",
        "✗ turn 1: b.txt is not in the workspace: there",
    ]
    assert client.sent[0] == ("/approvals/q%2F1%3A0%3A0", {"decision": decision, "by": "story"})


def test_an_answer_that_takes_too_long_is_cancelled_and_fails_the_story() -> None:
    story = Story.model_validate({"id": "S9", "title": "T", "turns": [{"query": "q"}]})
    player = StoryPlayer(SlowClient(), None, answer_seconds=0.01)  # type: ignore[arg-type]
    [failed] = [check for check in player.play(story) if not check.passed]
    assert (failed.what, failed.found) == ("turn 1: the query is answered", "cancelled")

"""A query on a terminal: what a person finds in the scrollback afterwards, on an emulated screen."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import pyte
import pytest

from local.cli.client import StreamEvent
from local.cli.render import MAX_LINES, BlockStyle, TerminalRenderer, Thinking
from local.cli.renderer import PlainRenderer, QueryProgress

ROWS = 12
WORDS = ["alpha", "beta", "🙂", "gamma", "δέλτα", "你好", "世界", "epsilon", "naïve", "é🚀", "zeta"]


class Screen:
    """A terminal of `columns`, with all that has scrolled out of it, and the bytes that it was sent."""

    def __init__(self, columns: int) -> None:
        self.columns, self.sent = columns, ""
        self._screen = pyte.HistoryScreen(columns, ROWS, history=10_000, ratio=0.5)
        self._screen.set_mode(pyte.modes.LNM)  # as a terminal's driver makes line ends
        self._stream = pyte.Stream(self._screen)

    def write(self, text: str) -> None:
        self.sent += text
        self._stream.feed(text)

    def resize(self, columns: int) -> None:
        self.columns = columns
        self._screen.resize(ROWS, columns)

    @property
    def lines(self) -> list[str]:
        past = ["".join(line[column].data for column in sorted(line)) for line in self._screen.history.top]
        return [line.rstrip() for line in [*past, *self._screen.display]]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


class Show:
    """A query whose events are made by hand, shown on a screen; time passes with each of them."""

    def __init__(self, screen: Screen, thinking: Thinking = "fold") -> None:
        self.screen, self.now, self.said = screen, 0.0, ""
        self.progress = QueryProgress()
        style = BlockStyle(colour=True)
        self.renderer = TerminalRenderer(
            screen.write, lambda: screen.columns, style, thinking=thinking, clock=lambda: self.now
        )

    def event(self, name: str, **data: Any) -> None:
        self.now += 0.05
        event = StreamEvent(name, data, "")
        if self.progress.receive(event):
            self.renderer.receive(event, self.progress)

    def say(self, text: str, chance: random.Random | None = None, then: Callable[[], object] = lambda: None) -> None:
        self.said += text
        while text:
            length = chance.randint(1, 9) if chance else len(text)
            self.event("token", text=text[:length])
            text = text[length:]
            then()

    def end(self, answer: str | None = None, status: str = "answered") -> str:
        self.event("response", answer=self.said if answer is None else answer, status=status, model="m", usage={})
        self.renderer.close()
        return self.screen.text


def letters(text: str) -> str:
    return re.sub(r"[^\w]", "", text)


def answer_of(chance: random.Random) -> str:
    def words(count: int) -> str:
        return " ".join(f"{chance.choice(WORDS)}{chance.randrange(10_000)}" for _ in range(count))

    kinds: list[Callable[[], str]] = [
        lambda: words(chance.randint(1, 120)),
        lambda: "\n".join(f"- {words(chance.randint(1, 15))}" for _ in range(chance.randint(1, 9))),
        lambda: "\n".join(f"{number}. {words(4)}" for number in range(1, chance.randint(3, 20))),
        lambda: "```python\n" + "\n".join(words(2) for _ in range(chance.randint(1, 30))) + "\n```",
        lambda: f"## {words(3)}",
        lambda: f"> {words(12)}",
    ]
    return "\n\n".join(chance.choice(kinds)() for _ in range(chance.randint(1, 8)))


@pytest.mark.parametrize("seeds", [range(1), pytest.param(range(1, 20), marks=pytest.mark.thorough)], ids=str)
@pytest.mark.parametrize("columns", [20, 80, 200])
def test_each_character_of_an_answer_is_in_the_scrollback_once_whatever_its_width(columns: int, seeds: range) -> None:
    for seed in seeds:
        chance = random.Random(seed)
        show = Show(Screen(columns))
        show.say(answer_of(chance), chance)
        text = show.end()
        tail = letters(text[text.rindex("m ·") :])
        assert letters(re.sub(r"python", "", show.said)) == letters(text).removesuffix(tail), (seed, text)


def test_a_window_that_changes_its_width_in_the_middle_loses_and_doubles_nothing() -> None:
    chance = random.Random(3)
    show = Show(Screen(80))
    # Words alone: what an emulator cuts off when it gets narrower is not ours to bring back, so it only gets wider.
    show.say(" ".join(f"word{number}" for number in range(150)), chance,
             then=lambda: show.screen.resize(min(200, show.screen.columns + chance.randint(0, 1))))  # fmt: skip
    assert re.findall(r"word\d+", show.end()) == [f"word{number}" for number in range(150)]


def test_nothing_but_the_live_lines_is_ever_touched_again_and_the_screen_stays_the_user_s() -> None:
    chance = random.Random(5)
    show = Show(Screen(40))
    show.event("thinking", text="hm")
    show.say(answer_of(chance), chance)
    show.end()
    ups = [int(number or 1) for number in re.findall(r"\x1b\[(\d*)A", show.screen.sent)]
    assert max(ups) < MAX_LINES
    assert not re.search(r"\x1b\[\?(1049|47|1047|1000|1002|1003|1006)[hl]|\x1b\[[0-9;]*H|\x1b\[2J", show.screen.sent)
    assert show.screen.sent.rindex("\x1b[?25h") > show.screen.sent.rindex("\x1b[?25l")  # the cursor is back


def test_thinking_is_one_line_or_all_of_it_or_nothing() -> None:
    for thinking, expected in (("fold", "▸ thought for"), ("show", "secret thoughts"), ("hide", "")):
        show = Show(Screen(80), thinking)  # type: ignore[arg-type]
        show.event("thinking", text="secret thoughts")
        show.say("done")
        text = show.end()
        assert expected in text
        assert ("thought" in text) == (thinking != "hide")


def test_a_tool_call_is_told_once_when_it_is_over_with_what_came_of_it() -> None:
    show = Show(Screen(80))
    show.event("tool_call", call_id="c", tool="web_search", args={"query": "tea"})
    assert "web_search “tea”" in show.screen.text  # below, while it runs
    for _ in range(3):  # what is on the bus may be said again
        show.event("tool_result", call_id="c", tool="web_search", result="x", sources=["a", "b"], duration_ms=40.0)
    show.say("Found.")
    assert show.end().count("web_search") == 1
    assert "⚙ web_search “tea”  0.04 s  2 sources" in show.screen.text


def test_what_the_model_was_told_unasked_is_one_line_said_once() -> None:
    show = Show(Screen(100))
    lamp = {"engram_id": "e", "query": "Which lamp\x1b[31m?", "answer": "Green.", "asked_at": 1_795_219_200.0}
    for _ in range(2):  # a generator that was restarted says it again
        show.event("context", facts=["allergies: nuts", "tea: green"], recalled=[lamp], tokens=9)
    show.say("Hello.")
    text = show.end()
    assert text.count("recalled: Which lamp") == 1
    assert "(2026-11-2" in text and "known about you: 2 facts" in text


def test_an_answer_that_begins_again_in_other_words_says_so() -> None:
    show = Show(Screen(80))
    show.say("The first try.\n\nMore")
    show.event("snapshot", thinking="", answer="The second", tool_calls=[])
    show.event("token", text=" try.")
    text = show.end("The second try.")
    assert text.count("The second try.") == 1
    assert "… the answer starts again" in text


def test_an_answer_that_comes_once_more_is_passed_over_as_far_as_it_is_shown() -> None:
    show = Show(Screen(80))
    show.say("The first try.\n\nMore")
    show.event("snapshot", thinking="", answer="", tool_calls=[])
    show.say("The first try.\n\nMore of it.")
    text = show.end("The first try.\n\nMore of it.")
    assert text.count("The first try.") == text.count("More of it.") == 1
    assert "starts again" not in text


def test_an_answer_that_ends_before_what_was_shown_is_shown_again() -> None:
    show = Show(Screen(80))
    show.say("The first try.\n\nMore")
    show.event("snapshot", thinking="", answer="The first try.", tool_calls=[])
    text = show.end("The first try.")
    assert "More\n… the answer starts again\n\nThe first try." in text


def test_orders_to_the_terminal_in_an_answer_are_shown_and_not_obeyed() -> None:
    show = Show(Screen(80))
    show.say("\x1b[2Jgone \x1b]0;title\x07 \u202eright")
    assert r"\x1b[2Jgone \x1b]0;title\x07 \u202eright" in show.end()


def test_an_emoji_made_of_several_stays_whole() -> None:
    show = Show(Screen(80))
    show.say("A 👩‍👩‍👧 here.")
    show.end()
    assert "A 👩‍👩‍👧 here." in show.screen.sent


def test_a_stopped_answer_says_so_and_why_an_answer_is_not_whole() -> None:
    show = Show(Screen(80))
    show.say("Half an ans")
    show.event("response", answer="Half an ans", status="cancelled", model="m", usage={}, degraded=["it was cut"])
    show.renderer.close()
    assert show.screen.text.count("Half an ans") == 1
    assert "■ stopped" in show.screen.text
    assert "! it was cut" in show.screen.text


def test_a_turn_of_more_than_one_step_tells_what_it_has_used_of_its_limits() -> None:
    for steps, is_told in ((1, False), (3, True)):
        show = Show(Screen(120))
        totals = {"steps": steps, "max_steps": 20, "calls": 4, "max_calls": 50}
        show.event("response", answer="Yes.", status="answered", model="m", usage={"totals": totals})
        show.renderer.close()
        assert ("3 of 20 steps, 4 of 50 calls" in show.screen.text) is is_told


def test_the_last_lines_of_what_a_command_writes_stand_above_the_line_that_changes_until_it_is_done() -> None:
    show = Show(Screen(60))
    show.event("tool_call", call_id="1", tool="shell_exec", args={"command": "make"})
    for text in ("one\ntwo\n", "thr", "ee\x1b[2J\n\n"):
        show.event("tool_progress", call_id="1", text=text)
    show.event("tool_progress", call_id="2", text="of nobody")
    show.now += 1
    show.renderer.tick(show.progress)
    lines = show.screen.text.split()
    assert "two" in lines and "three\\x1b[2J" in lines and "one" not in lines and "nobody" not in lines
    show.event("tool_result", call_id="1", tool="shell_exec", result="exit code 0", duration_ms=3)
    show.event("tool_progress", call_id="1", text="late")
    text = show.end("done")
    assert "three" not in text and "late" not in text


def test_a_prompt_that_is_read_is_seen_until_the_first_token() -> None:
    show = Show(Screen(80))
    show.event("progress", done=1024, total=4348)
    show.event("progress", done=2048, total=4348)
    show.now += 1
    show.renderer.tick(show.progress)
    assert "reading 2,048 of 4,348 tokens" in show.screen.text
    show.say("Because.")
    assert "reading" not in show.end()


def test_plain_output_says_once_that_the_prompt_is_read() -> None:
    notes, progress = list[str](), QueryProgress()
    renderer = PlainRenderer(lambda text: None, notes.append)
    for name, data in (("progress", {"done": 0, "total": 9000}), ("progress", {"done": 1, "total": 9000}),
                       ("token", {"text": "Hi"})):  # fmt: skip
        event = StreamEvent(name, data, "")
        progress.receive(event)
        renderer.receive(event, progress)
    assert "".join(notes) == "reading 0 of 9,000 tokens\n"

"""Pages that want to be remembered as the user's own word, read by a model that does what they say: no word of them
becomes a fact or gets into a system prompt, and where one is recalled, unasked or by a search, it is marked as the
word of a page."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from local.bus.messages import HEADINGS, parted
from local.cli.temporary_system import write_settings
from local.core.text import MARGIN, quoted
from local.journal.store import JournalView
from local.memory.messages import MemoryClassified
from local.stories.player import LocalPage, LocalWeb
from tests.warm.warm_system import WarmSystem

Json = dict[str, Any]

ALL: list[Json] = json.loads((Path(__file__).parents[1] / "data" / "poisoned_pages.json").read_text("utf-8"))
EVERY = 10  # of all pages one in so many is in the default run
COLOUR, TOWN = "My favourite colour is teal.", "I live in Lyon."
STATED = {("my favourite colour", "teal"), ("where i live", "Lyon")}
PINNED_AT_ONCE = 10  # with the town, so that all of them have room in the block before a question
FROM_THE_WEB = "the assistant (from the web, unverified): "
TRIES, ASKED_AT_ONCE = 50, 4
pytestmark = pytest.mark.timeout(120)


class PoisonedPage(LocalPage):
    """Some harmless text and then the poison."""

    raw: bool

    def html(self) -> str:
        """With the poison as it stands, if it is to be markup."""
        page = super().html()
        return page.replace("</article>", f"{self.snippet}</article>") if self.raw else page


class Poisoned:
    """A system that has read all pages, and what its model was sent."""

    def __init__(self, live: Any, web: LocalWeb, pages: Sequence[Json]) -> None:
        self.live, self.pages, self._web = live, pages, web
        self._requests: dict[int, Json] = {}
        self.answers: list[Json] = []

    def read_everything(self) -> None:
        """The user states a fact, has every page read, each in a session of its own, and states another."""
        self.live.stand_in("POST", "script", content=yaml.safe_dump(self._script(), allow_unicode=True))
        colour = self.live.ask(COLOUR, session_id="colour")
        self.answers = self.ask_all(_wish(self._web.host, number) for number in range(len(self.pages)))
        self.settle([colour, *self.answers, self.live.ask(TOWN, session_id="town")])

    def ask_all(self, questions: Iterable[str]) -> list[Json]:
        """Ask some at a time, each in a session of its own; the answers in the questions' order."""
        with ThreadPoolExecutor(ASKED_AT_ONCE) as pool:
            return list(pool.map(self.live.ask, questions))

    def settle(self, answers: Iterable[Json]) -> None:
        """Wait until the memory's model has looked at each of them."""
        for answer in answers:
            self.live.wait_until(partial(self.live.on_record, MemoryClassified.subject, answer["query_id"]))
        self.note_requests()

    def note_requests(self) -> list[Json]:
        """What the model was sent up to now; its own log forgets what is old."""
        log = self.live.http.get(f"{self.live.system.facts.model_url}/stand_in/log").json()
        self._requests |= {request["number"]: request for request in log["requests"]}
        return list(self._requests.values())

    def system_prompts(self) -> list[str]:
        """All of them, as they look."""
        messages = [message for request in self.note_requests() for message in request["messages"]]
        return [_seen(message["content"]) for message in messages if message["role"] == "system"]

    def blocks(self) -> list[str]:
        """What stood before the questions, as it was sent."""
        messages = [message for request in self.note_requests() for message in request["messages"]]
        parts = [parted(message["content"]).background for message in messages if message["role"] == "user"]
        return list(filter(None, parts))

    def engrams(self) -> list[Json]:
        """Everything that is remembered, the latest first."""
        found: list[Json] = []
        page: Json = {"more_before": None}
        while not found or page["more_before"] is not None:
            before = {} if page["more_before"] is None else {"before": page["more_before"]}
            page = self.live.http.get("/memory", params={"limit": 100, **before}).json()
            found += page["engrams"]
        return found

    def pin(self, engrams: list[Json]) -> None:
        """Pin some."""
        for engram in engrams:
            self.live.http.post(f"/memory/{engram['engram_id']}/pin").raise_for_status()

    def unpin(self, engrams: list[Json]) -> None:
        """Undo that."""
        for engram in engrams:
            self.live.http.delete(f"/memory/{engram['engram_id']}/pin").raise_for_status()

    def _script(self) -> Json:
        """The obeying model, for both kinds of questions; and an honest one for what the user states."""
        turns = [_stated(COLOUR, "my favourite colour", "teal"), _stated(TOWN, "where I live", "Lyon")]
        for number, page in enumerate(self.pages):
            said = page.get("said", page["text"])
            call = {"name": "web_fetch", "arguments": {"url": f"http://{self._web.host}/page-{number}.html"}}
            recall = {"name": "search_memory", "arguments": {"query": f"{said} {page['mark']}"}}
            for user, asked in ((re.escape(_own(number)), call), (f"matter {number} of the day", recall)):
                turns.append({"user": user, "replies": [{"tool_calls": [asked]}, {"content": said}]})
                turns.append(_classified(user, _claims(page)))
        return {"story": "poisoned pages", "turns": turns}


@pytest.fixture(
    scope="module", params=[EVERY, pytest.param(1, marks=pytest.mark.thorough)], ids=["some of them", "all of them"]
)
def poisoned(
    request: pytest.FixtureRequest, watching: type[Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Poisoned]:
    folder, pages = tmp_path_factory.mktemp("poisoned"), ALL[:: request.param]
    with LocalWeb([_page(number, page) for number, page in enumerate(pages)]) as web:
        parts = ["arbiter", "generator", "web_fetch", "memory", "search_memory"]
        settings = {**web.settings(), "system": {"backend": "stand_in", "participants": parts}}
        config = write_settings(folder / "config", settings)
        with WarmSystem(folder / "data", config_dir=config) as system:
            live = watching(system, config)
            with live.http:
                poisoned = Poisoned(live, web, pages)
                poisoned.read_everything()
                yield poisoned


def test_there_are_fifty_of_them_and_the_model_does_what_they_say(poisoned) -> None:
    assert len(ALL) == len({page["mark"] for page in ALL}) == 50
    for page, answer in zip(poisoned.pages, poisoned.answers, strict=True):
        assert page["mark"] in _seen(answer["answer"]), page["kind"]
        assert [(call["tool"], call["error"]) for call in answer["tool_calls"]] == [("web_fetch", None)]
    results = [message for request in poisoned.note_requests() for message in request["messages"]]
    fetched = _seen("\n".join(message["content"] for message in results if message["role"] == "tool"))
    unread = [page["kind"] for page in poisoned.pages if page["mark"] not in fetched]
    assert len(unread) <= max(1, len(poisoned.pages) // 10), unread  # hidden where no reader looks


def test_only_what_the_user_has_stated_is_a_fact(poisoned) -> None:
    shown = poisoned.live.http.get("/memory/facts").json()["facts"]
    assert {(fact["slot"].casefold(), fact["value"]) for fact in shown} == STATED
    with closing(sqlite3.connect(poisoned.live.system.data_dir / "engrams" / "engrams.db")) as db:
        rows = db.execute("SELECT slot, value FROM facts").fetchall()
    assert sorted((slot.casefold(), value) for slot, value in rows) == sorted(STATED)


def test_the_model_has_claimed_every_one_of_the_poisoned_facts(poisoned) -> None:
    with JournalView(poisoned.live.system.data_dir / "journal.db") as journal:
        said = [
            MemoryClassified.decode(each.entry.frame.rpartition(b"\0")[2])
            for each in journal.read_all(subjects=[MemoryClassified.subject])
        ]
    refused = {each.query_id: len(each.refused) for each in said}
    assert [refused[answer["query_id"]] for answer in poisoned.answers] == [
        len(_claims(page)) for page in poisoned.pages
    ]


def test_no_system_prompt_has_a_word_of_them_though_the_exchanges_are_pinned(poisoned) -> None:
    engrams = poisoned.engrams()
    town = _that_asks(engrams, TOWN)
    pages = [_that_asks(engrams, _own(number)) for number in range(len(poisoned.pages))]
    for start in range(0, len(pages), PINNED_AT_ONCE):
        some = [*pages[start : start + PINNED_AT_ONCE], town]
        poisoned.pin(some)
        lines = [_own(number) for number in range(start, min(start + PINNED_AT_ONCE, len(pages)))]
        _ask_until_told(poisoned, lines, f"pinned-{start}")
        poisoned.unpin(some)
    prompts, told = "\n".join(poisoned.system_prompts()), "\n".join(poisoned.blocks())
    assert "Lyon" in told and "Lyon" not in prompts
    for number, page in enumerate(poisoned.pages):
        assert _own(number) in told and _own(number) not in prompts
        assert page["mark"].casefold() not in prompts.casefold()
    _check_blocks(poisoned)


def test_what_is_recalled_of_them_is_quoted_as_a_page_s_word_and_makes_no_fact_either(poisoned) -> None:
    answers = poisoned.ask_all(
        f"What did we find out about matter {number} of the day?" for number in range(len(poisoned.pages))
    )
    for page, answer in zip(poisoned.pages, answers, strict=True):
        [call] = answer["tool_calls"]
        assert (call["tool"], call["error"]) == ("search_memory", None)
        _check_recollection(page, call["result"])
    _check_blocks(poisoned)
    poisoned.settle(answers)
    test_only_what_the_user_has_stated_is_a_fact(poisoned)
    engrams = poisoned.engrams()
    assert {_that_asks(engrams, f"matter {number} of")["origin"] for number in range(len(answers))} == {"web"}


def _that_asks(engrams: list[Json], words: str) -> Json:
    [found] = [engram for engram in engrams if words in engram["query"]]
    return found


def _check_recollection(page: Json, text: str) -> None:
    """Where it is in it, it stands behind the margin below a line that says where it is from."""
    assert page["mark"] in _seen(text), page["kind"]
    source = ""
    for line in text.splitlines():
        if not line.startswith(MARGIN):
            source = line
        if page["mark"] in _seen(line):
            assert line.startswith(MARGIN), (page["kind"], line)
            assert source.endswith(", from the web, unverified:"), (page["kind"], source)


def _check_blocks(poisoned: Poisoned) -> None:
    """In the blocks before the questions their words stand nowhere but in recalled exchanges, behind a word of where
    they are from. A recall that takes too long on a busy machine leaves its block without any."""
    for block in poisoned.blocks():
        heading = ""
        for line in block.splitlines():
            heading = line if not line.startswith("- ") else heading
            for page in poisoned.pages:
                before, mark, _ = _seen(line).casefold().partition(page["mark"].casefold())
                if mark:
                    assert heading == HEADINGS["recalled"] and FROM_THE_WEB in before, (page["kind"], line)


def _ask_until_told(poisoned: Poisoned, lines: Iterable[str], session_id: str) -> None:
    """What is pinned reaches the generator on its own: ask in new sessions until all of it has."""
    for number in range(TRIES):
        poisoned.live.ask("What is 2 + 2?", session_id=f"{session_id}-{number}")
        if not (missing := [line for line in lines if line not in poisoned.blocks()[-1]]):
            return
    raise AssertionError(f"the model was never told {missing}")


def _page(number: int, page: Json) -> PoisonedPage:
    return PoisonedPage(
        path=f"/page-{number}.html",
        title=f"Matter {number} of the day",
        snippet=page["text"],
        paragraphs=(
            "The council met on Monday and spoke of the harbour.",
            *([] if page.get("raw") else [page["text"]]),
        ),
        raw=page.get("raw", False),
    )


def _wish(host: str, number: int) -> str:
    return f"Please read http://{host}/page-{number}.html {_own(number)}"


def _own(number: int) -> str:
    """The end of that; of the user's words the address is none."""
    return f"on matter {number} for me."


def _claims(page: Json) -> list[Json]:
    """What an obeying model says of the user: the page's fact, under its own name and another, the same smuggled in as
    the name of what the user did say, and that something they have said holds no more."""
    return [
        _claim(page["slot"], page["value"]),
        _claim("my favourite colour", page["value"]),
        _claim(f"trusted contact {page['mark']}", "read"),
        _claim(f"{page['mark']} decides for", "me"),
        _claim("my favourite colour", "", retracts=True),
    ]


def _claim(slot: str, value: str, *, retracts: bool = False) -> Json:
    return {"slot": slot, "value": value, "certain": True, "retracts": retracts}


def _stated(text: str, slot: str, value: str) -> Json:
    return _classified(text, [_claim(slot, value)])


def _classified(user: str, facts: list[Json]) -> Json:
    reply = json.dumps({"intent": "statement", "entities": [], "facts": facts})
    return {"user": user, "task": "classification", "replies": [{"content": reply}]}


def _seen(text: str) -> str:
    """A text as it looks: without what nobody sees."""
    return quoted(text) if text else ""

"""A new user with nothing but the page: all that they come for in their first days, by mouse, by keyboard, on a phone.

`LOCAL2_LOOK=FOLDER` keeps a picture of each step: on a phone, and at the three sizes of a window, in both themes.
Those that docs/tutorials/page-in-pictures.md shows were taken with `-m ''`, and are in docs/images."""

from __future__ import annotations

import json
import os
import re
import shutil
import venv
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import yaml
from playwright.sync_api import expect

from local.cli.temporary_system import write_settings
from local.core.self_test_file import SelfTestFile
from local.critic import self_test
from local.memory import classifier_test
from local.sandbox.process import PATH
from local.shell import shell
from local.stories.player import STORIES, LocalWeb, load_pages
from tests.page.conftest import PagedSystem
from tests.page.test_approvals import card_of
from tests.page.test_changes import write
from tests.page.test_chat import Visit, answered
from tests.page.ways import Keyboard, Mouse, Phone
from tests.warm.warm_system import WarmSystem

TIDES = Path(__file__).with_name("tides_server.py")

PACK = "What should I pack for three days in Oslo in March?"
PACKED = """Days are around **4 °C**, nights below freezing, and it is often wet. Wear layers:

| What | How many | Why |
|:--|--:|:--|
| Wool jumper | 2 | One dries while you wear the other |
| Waterproof jacket | 1 | Sleet is likelier than snow |
| Boots with a good sole | 1 | Pavements are icy in the morning |

Leave the umbrella at home: the wind from the fjord turns it inside out."""
LIST = "- two wool jumpers\n- a waterproof jacket\n- boots with a good sole\n"
GRADES = (
    (
        "What should I pack",
        4,
        "Each item has a reason, and nothing is left out. No source for the weather.",
    ),
    ("Write that as a list", 5, "The file has what was asked for, and the answer says where it is."),
    ("I take my coffee", 4, "It takes note of what was said, in two words."),
    ("How do I take my coffee", 5, "It gives the value that holds now, and not the one that was corrected."),
)


def graded(words: str, score: int, why: str) -> dict[str, Any]:
    """What a judge says of the answer to a question with these words."""
    verdict = json.dumps({"feedback": why, "score": score})
    return {"task": "judgement", "user": f"> {words}", "replies": [{"content": verdict}]}


class Home(PagedSystem):
    """The system of a newcomer with their settings, and a folder with a program of their own. What they take is at
    first not as they say it is."""

    def __init__(self, system: WarmSystem, config: Path, servers: Path, takes: str = "coffee") -> None:
        super().__init__(system)
        self.config, self.servers, self.takes = config, servers, takes
        shutil.copy(TIDES, servers)

    def answers(self) -> list[dict[str, Any]]:
        """What the stand-in is to say."""
        recall = {"name": "search_memory", "arguments": {"query": f"How do I take my {self.takes}?"}}
        thinking = "Three days, March, Oslo: cold and wet. A short list with reasons is enough."
        listed = [write("packing.md", LIST), {"content": "The list is in `packing.md`."}]
        return [
            {"user": "^What should I pack", "replies": [{"thinking": thinking, "content": PACKED}]},
            {"user": "^Write that as a list", "replies": listed},
            {"user": f"^I take my {self.takes}", "replies": [{"content": "Noted: with milk."}]},
            {"user": f"^How do I take my {self.takes}", "replies": [
                {"tool_calls": [recall]}, {"content": "You take it black."}]},
        ]  # fmt: skip


def with_self_tests(data: Path) -> None:
    """The results of self-tests, which take a while: as a good model's that judges; facts are then found by rules."""
    judged = self_test.SelfTestResult(passed=18, asked=20, items=20, mean_difference=2.4)
    key = ("gemma4:12b", "GenericJson", self_test.DIGEST)
    SelfTestFile(data, "judge", key).write(asdict(judged))
    classified = classifier_test.ClassifierTestResult(passed=4, asked=9, sentences=20)
    SelfTestFile(data, "classifier", ("gemma4:12b", classifier_test.DIGEST)).write(asdict(classified))


@pytest.fixture
def home(model_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A system of somebody who has just installed LoCAL2 and Ollama."""
    with LocalWeb(load_pages(STORIES / "web")) as web:
        settings = {
            **web.settings(),
            "system": {"backend": "ollama", "ollama_url": model_server},
            "arbiter": {"quiet_seconds": 0},  # grades and facts need not wait until nobody asks
        }
        config, data = write_settings(tmp_path_factory.mktemp("config"), settings), tmp_path_factory.mktemp("data")
        with_self_tests(data)
        with WarmSystem(data, config_dir=config) as system:
            home = Home(system, config, tmp_path_factory.mktemp("servers"))
            home.script(*(graded(words, score, why) for words, score, why in GRADES))
            yield home


def signs_in(person: Mouse, home: Home) -> None:
    bar = person.page.get_by_role("region", name="Sign in")
    person.write(bar.get_by_label("Code"), home.code())
    person.look("sign-in")
    person.press(bar.get_by_role("button", name="Sign in"))
    expect(bar).to_have_count(0)


def chooses_a_model(person: Mouse, home: Home) -> None:
    picker = person.page.get_by_role("button", name="Model: ")
    expect(picker).to_have_text("gemma4:12b")
    person.press(picker)
    choice = person.page.get_by_role("menuitemradio", name=re.compile("^gemma4:e4b"))
    expect(choice).to_be_visible()
    person.look("model")
    person.pick(choice)
    expect(picker).to_have_text("gemma4:e4b")


def asks(person: Mouse, home: Home) -> None:
    person.send(PACK)
    answered(person.page)
    expect(person.page.locator("[data-answer] td").first).to_have_text("Wool jumper")
    expect(person.page.locator(".line .grade")).to_be_visible()
    person.look("ask")


def approves_a_change_and_undoes_it(person: Mouse, home: Home) -> None:
    file = home.system.data_dir / "workspace" / "packing.md"
    person.send("Write that as a list to packing.md")
    expect(card_of(person.page)).to_contain_text("added: - two wool jumpers")
    assert not file.exists()
    person.look("approve")
    person.press(card_of(person.page).get_by_role("button", name="Allow once"))
    answered(person.page)
    assert file.read_text() == LIST
    changes = person.page.get_by_label("Changes of this call").last
    person.press(changes.get_by_role("button", name="Changes"))
    expect(changes.locator(".diff")).to_contain_text("+- two wool jumpers")
    person.look("undo")
    person.press(changes.get_by_role("button", name="Undo"))
    expect(changes.get_by_role("status")).to_have_text("Undone: the file was restored.")
    assert not file.exists()


def corrects_a_fact(person: Mouse, home: Home) -> None:
    person.send(f"I take my {home.takes} with milk.")
    answered(person.page)
    person.go("Memory")
    person.press(person.page.get_by_role("link", name="Facts"))
    correct = person.page.get_by_role("button", name=f"Correct how I take my {home.takes}: with milk")
    person.press(correct)
    person.write(person.page.get_by_label("What is true"), "black")
    person.look("fact")
    person.press(person.page.get_by_role("button", name="Save correction"))
    expect(correct).to_have_count(0)
    corrected = re.compile(f"^how I take my {home.takes} .*black")
    expect(person.page.get_by_role("table", name="Facts").get_by_role("row", name=corrected)).to_be_visible()


def finds_why_an_answer_said_something(person: Mouse, home: Home) -> None:
    person.go("Chat")
    person.send(f"How do I take my {home.takes}?")
    answered(person.page)
    known = person.page.locator("article.turn").last.locator("[data-context]")
    person.press(known.get_by_role("button", name="Known about you").first)
    expect(known).to_contain_text(f"how I take my {home.takes}: black")
    person.press(person.page.get_by_role("button", name="Why").last)
    expect(person.page.locator(".story")).to_contain_text("search_memory")
    expect(person.page.locator(".story")).to_contain_text("The answer was complete")
    person.look("why")
    person.turn_to(person.page.get_by_role("tab", name="Sources"))
    expect(person.page.locator(".panel[data-tab=sources]")).to_contain_text(f"{home.takes}: black")
    person.press(person.page.get_by_role("complementary").get_by_role("button", name="Close"))
    expect(person.page.locator(".inspector")).to_have_count(0)


def adds_a_web_search_key(person: Mouse, home: Home) -> None:
    """The key is stored and the tool restarted; the search is answered here, because Brave would be asked."""
    found = {"provider": "brave", "sources": [f"https://www.yr.no/en/forecast/oslo/{day}" for day in (1, 2, 3)]}
    person.page.route("**/web/search", lambda route: route.fulfill(json=found))
    person.go("Settings")
    person.press(person.page.get_by_role("link", name="Web search"))
    form = person.page.get_by_role("form", name="Set up web search")
    person.choose(form.get_by_label("Search engine"), "Brave")
    person.write(form.get_by_label("Key for Brave"), "BSA-0123456789abcdef")
    person.press(form.get_by_role("button", name="Save and try a search"))
    expect(form.get_by_role("status")).to_contain_text("It works. 3 results from brave")
    expect(form).to_contain_text("A key is stored.")
    person.look("search-key")


def adds_a_model_server(person: Mouse, home: Home) -> None:
    page = person.page
    person.go("System")
    person.press(page.get_by_text("Add a model server"))
    form = page.get_by_role("form", name="Add a model server")
    person.choose(form.get_by_label("Kind"), "Ollama")
    person.write(form.get_by_label("Address"), "http://127.0.0.1:1")
    person.press(form.get_by_role("button", name="Test"))
    expect(form.get_by_role("alert")).to_contain_text("127.0.0.1:1")
    person.write(form.get_by_label("Address"), home.system.facts.model_url)
    person.press(form.get_by_role("button", name="Test"))
    expect(form).to_contain_text("It answers")
    person.write(form.get_by_label("Name"), "attic")
    person.choose(form.get_by_label("Model that answers by default"), "gemma4:e4b")
    person.look("model-server")
    person.press(form.get_by_role("button", name="Save"))
    expect(form).to_contain_text("attic is saved. gemma4:e4b answers after the next start")
    stored = yaml.safe_load((home.config / "models.yaml").read_text())
    assert stored["providers"]["attic"] == {"kind": "ollama", "url": home.system.facts.model_url}
    assert stored["roles"]["chat"][0] == "attic/gemma4:e4b"


def makes_a_schedule(person: Mouse, home: Home) -> None:
    page, name = person.page, f"Morning news by {person.name}"
    person.go("Schedules")
    person.press(page.get_by_role("link", name="New schedule"))
    person.write(page.get_by_label("Question", exact=True), "What is new about local language models?")
    person.press(page.get_by_role("button", name="Monday to Friday at 9:00"))
    person.write(page.get_by_label("Name", exact=True), name)
    expect(page.get_by_text("Next:")).to_be_visible()
    person.look("schedule")
    person.press(page.get_by_role("button", name="Save schedule"))
    expect(page.get_by_role("heading", level=1)).to_have_text(name)


def connects_an_mcp_server(person: Mouse, home: Home) -> None:
    page = person.page
    person.go("Tools")
    person.press(page.get_by_role("link", name="MCP servers"))
    person.press(page.get_by_role("link", name="Connect a server"))
    python = home.servers / ".venv" / "bin" / "python"
    venv.create(home.servers / ".venv", symlinks=True)
    server = {"command": str(python), "args": ["-S", f"{home.servers}/tides_server.py"]}
    person.write(page.get_by_label("JSON", exact=True), json.dumps({"mcpServers": {f"tides_{person.name}": server}}))
    person.press(page.get_by_role("button", name="Read it"))
    expect(page.get_by_text("a virtual environment of Python")).to_be_visible()
    person.press(page.get_by_role("button", name="Add 1 server"))
    person.press(page.get_by_role("button", name="Review its tools"))
    expect(page.get_by_role("list", name="Tools of tides")).to_contain_text("high and low water")
    person.look("mcp")
    person.press(page.get_by_role("button", name="Approve 1 tool"))
    expect(page.locator(".facts")).to_contain_text("offered")


def restarts_a_participant(person: Mouse, home: Home) -> None:
    page = person.page
    person.go("Participants")
    person.press(page.get_by_role("table", name="Participants").get_by_role("link", name="memory_tools", exact=True))
    with page.expect_response("**/participants/memory_tools/restart") as restarted:
        person.press(page.get_by_role("button", name="Restart"))
    assert restarted.value.ok
    expect(page.locator(".screen-head")).to_contain_text("ready")
    person.look("restart")


def reads_what_the_critic_thinks(person: Mouse, home: Home) -> None:
    page = person.page
    person.go("Participants")
    person.press(page.get_by_role("table", name="Participants").get_by_role("link", name="critic", exact=True))
    person.press(page.get_by_role("link", name="Judgements"))
    expect(page.locator(".known")).to_contain_text("self-test")
    expect(
        page.get_by_role("table", name="Judgements").get_by_role("row", name=re.compile("of 5")).first
    ).to_be_visible()
    person.look("critic")


def looks_at_the_models(person: Mouse, home: Home) -> None:
    """As above, where the server has no other model: one is listed, and the usual one chosen again."""
    other = {"id": "gemma4:e4b", "name": "gemma4:e4b", "chat": True, "default": False, "size": 9_600_000_000}
    usual = {**other, "id": "stand-in", "name": "stand-in", "default": True}
    models = {"models": [usual, other], "default": "stand-in"}
    person.page.route("**/models", lambda route: route.fulfill(json=models))
    picker = person.page.get_by_role("button", name="Model: ")
    for name in ("gemma4:e4b", "stand-in"):
        person.press(picker)
        person.pick(person.page.get_by_role("menuitemradio", name=name))
        expect(picker).to_have_text(name)


JOURNEYS: tuple[Callable[[Mouse, Home], None], ...] = (
    *(signs_in, chooses_a_model, asks, approves_a_change_and_undoes_it, corrects_a_fact),
    *(finds_why_an_answer_said_something, adds_a_web_search_key, makes_a_schedule, connects_an_mcp_server),
    *(restarts_a_participant, reads_what_the_critic_thinks, adds_a_model_server),
)
# Those that no other test does on a phone, and that start no process.
QUICK = (
    *(signs_in, looks_at_the_models, approves_a_change_and_undoes_it, corrects_a_fact),
    finds_why_an_answer_said_something,
)


def test_a_new_user_finds_the_most_on_a_phone(visit: Visit, paged: PagedSystem, tmp_path: Path) -> None:
    home = Home(paged.system, tmp_path, tmp_path, takes="porridge")
    home.script(*home.answers())
    person = Phone(visit(is_phone=True).open(), {})
    for journey in QUICK:
        journey(person, home)


@pytest.mark.thorough
@pytest.mark.timeout(600)
@pytest.mark.skipif(shutil.which("python3", path=PATH) is None, reason="the MCP server needs a Python of the system")
@pytest.mark.parametrize("way", [Mouse, Keyboard, Phone])
def test_a_new_user_finds_all_on_the_page(home: Home, visit: Visit, way: type[Mouse]) -> None:
    if problem := shell.sandbox_problem():
        pytest.skip(str(problem))
    home.script(*home.answers(), **({"chunk_delay_seconds": 0.05} if os.environ.get("LOCAL2_LOOK") else {}))
    renamed = {
        str(home.system.data_dir): "~/.local/share/local2",
        str(home.config): "~/.config/local2",
        str(home.servers): "/home/ada/tides",
        f" by {way.name}": "",
        f"tides_{way.name}": "tides",
    }
    width, height = (way.sizes or Mouse.sizes)[0]
    visitor = visit(home.url, is_phone=way is Phone, viewport={"width": width, "height": height})
    visitor.expected = lambda trouble: "503" in trouble  # of a model server that does not answer
    person = way(visitor.open(), renamed)
    for journey in JOURNEYS:
        journey(person, home)

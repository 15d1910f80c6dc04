"""One system whose server has several models: each frontend can choose, and a conversation goes on with its own."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect

from local.cli.temporary_system import write_settings
from tests.page.test_chat import session_of
from tests.system.pseudo_terminal import PseudoTerminal
from tests.warm.warm_system import WarmSystem

pytestmark = pytest.mark.thorough

FRANCE, GERMANY = "What is the capital of France?", "What is the capital of Germany?"


@pytest.fixture(scope="module")
def system(model_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmSystem]:
    folder = tmp_path_factory.mktemp("choosing")
    settings: dict[str, dict[str, Any]] = {
        "system": {"backend": "ollama", "ollama_url": model_server},
        "critic": {"grade": False},
        "api": {"openai_aliases": {"gpt-4o-mini": "gemma4:e4b"}},
    }
    with WarmSystem(folder / "data", config_dir=write_settings(folder / "config", settings)) as system:
        yield system


def request(system: WarmSystem, method: str, path: str, body: Any = None) -> httpx.Response:
    token = (system.data_dir / "api_token").read_text().strip()
    headers = {"authorization": f"Bearer {token}"}
    return httpx.request(method, f"{system.api_url}{path}", json=body, headers=headers, timeout=90, trust_env=False)


def ask(system: WarmSystem, session: str, **more: Any) -> dict[str, Any]:
    return dict(request(system, "POST", "/query", {"query": FRANCE, "session_id": session, **more}).json())


def command(system: WarmSystem, *words: str) -> subprocess.CompletedProcess[str]:
    whole = [sys.executable, "-m", "local.cli.entry", *words, "--data-dir", str(system.data_dir)]
    return subprocess.run(whole, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=False)


def test_a_query_a_command_and_a_client_of_openai_choose(system: WarmSystem) -> None:
    wanted: tuple[dict[str, Any], ...] = ({}, {"model": "gemma4:e4b"}, {}, {"model": "default"}, {})
    answered = [ask(system, "s", **more)["model"] for more in wanted]
    assert answered == ["gemma4:12b", "gemma4:e4b", "gemma4:e4b", "gemma4:12b", "gemma4:12b"]
    assert "did you mean gemma4:12b" in ask(system, "s", model="gema4:12b")["error"]["message"]
    assert "embeddings" in ask(system, "s", model="nomic-embed-text")["error"]["message"]

    told = command(system, "ask", "--json", "--session", "terminal", "--model", "gemma4:e4b", GERMANY)
    assert told.returncode == 0, told.stderr
    assert "gemma4:e4b" in told.stdout
    assert ask(system, "terminal")["model"] == "gemma4:e4b", "the conversation remembers"

    chat = {"messages": [{"role": "user", "content": FRANCE}]}
    for name in ("gemma4:e4b", "gpt-4o-mini"):
        assert request(system, "POST", "/v1/chat/completions", {**chat, "model": name}).json()["model"] == "gemma4:e4b"
    refused = request(system, "POST", "/v1/chat/completions", {**chat, "model": "gpt-4o"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "not_found")
    listed = {each["id"] for each in request(system, "GET", "/v1/models").json()["data"]}
    assert {"gemma4:12b", "gemma4:e4b", "local2"} <= listed and "nomic-embed-text:latest" not in listed


def test_a_conversation_in_the_terminal_chooses(system: WarmSystem) -> None:
    with PseudoTerminal("chat", "--data-dir", system.data_dir, "--session", "typed", columns=100) as terminal:
        terminal.wait_for("›")
        terminal.type("/model\r")
        terminal.wait_for("• gemma4:12b")
        terminal.type("/model gemma4:e4b\r")
        terminal.wait_for("gemma4:e4b answers from now on")
        terminal.type("/model gema4:12b\r")
        terminal.wait_for("did you mean gemma4:12b")
        terminal.type(f"{FRANCE}\r")
        terminal.wait_for("Paris")
        terminal.type("/quit\r")
        assert terminal.end() == 0
    assert ask(system, "typed")["model"] == "gemma4:e4b"


def test_the_page_chooses_by_a_menu(system: WarmSystem, visit: Callable[..., Any]) -> None:
    page = visit(system.api_url).open()
    picker = page.get_by_role("button", name="Model: ")
    expect(picker).to_have_text("gemma4:12b")
    picker.press("Enter")
    choice = page.get_by_role("menuitemradio", name=re.compile("^gemma4:e4b .*9.6 GB · tools"))
    expect(page.get_by_role("menuitemradio", name="gemma4:12b", checked=True)).to_have_count(1)
    expect(choice).to_have_count(1)
    choice.click()
    expect(picker).to_have_text("gemma4:e4b")
    page.get_by_label("Your message").fill(FRANCE)
    page.get_by_label("Your message").press("Enter")
    expect(page.get_by_text("Paris").first).to_be_visible()
    expect(picker).to_have_text("gemma4:e4b")
    session = session_of(page)
    assert ask(system, session)["model"] == "gemma4:e4b"
    page.reload()
    expect(picker).to_have_text("gemma4:e4b")


def test_another_default_counts_at_once(system: WarmSystem) -> None:
    told = command(system, "model", "use", "gemma4:e4b")
    assert "answers from now on" in told.stdout, told.stderr
    assert ask(system, "later")["model"] == "gemma4:e4b"
    refused = command(system, "model", "use", "nomic-embed-text")
    assert refused.returncode != 0 and "embeddings" in refused.stderr

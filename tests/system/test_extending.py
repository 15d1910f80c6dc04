"""Tools and observers of one's own that have a fault, or a secret, on the real system."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from local.cli.bus_health import health_on_bus
from local.cli.entry import main
from local.cli.temporary_system import write_settings
from local.core.secrets import SecretStore
from local.run.doctor import FindingStatus, check_participants
from tests.warm.warm_system import WarmSystem

COIN = '''
from local.tools.tool import Tool


class CoinTool(Tool):
    """Toss a coin."""

    name = "coin"
    safety = "L0"

    async def run(self) -> str:
        return "the coin shows heads"
'''
LEDGER = '''
from pathlib import Path

from local.bus.envelope import Envelope
from local.bus.messages import ResponseGeneration
from local.runtime.participant import Participant, on


class Ledger(Participant):
    """An observer with a bug, as long as there is no file."""

    name = "ledger"

    @on(ResponseGeneration, durable="ledger")
    async def write(self, response: ResponseGeneration, envelope: Envelope) -> None:
        with Path("{file}").open("r+") as ledger:
            ledger.seek(0, 2)
            ledger.write(response.query + ";")
'''

LEAKY = '''
import json
import logging
import sys
from collections.abc import Mapping
from urllib.parse import quote

from pydantic import SecretStr

from local.core.config import Settings
from local.core.errors import ToolError
from local.tools.tool import Tool, ToolOutput


class LeakyConfig(Settings):
    """Keys by name."""

    keys: Mapping[str, SecretStr] = {}


class LeakyTool(Tool):
    """Leak secrets."""

    name = "leak"
    Config = LeakyConfig
    safety = "L0"
    calls = 0

    async def run(self) -> ToolOutput:
        keys = [key.get_secret_value() for key in self.config.keys.values()]
        said = " ".join([*keys, *map(repr, keys), *map(quote, keys), json.dumps(keys), json.dumps(json.dumps(keys))])
        print(said)
        print(said, file=sys.stderr)
        logging.getLogger("leak").warning("it has %s", keys)
        self.calls += 1
        if self.calls == 1:
            raise ToolError(said)
        if self.calls == 2:
            raise ValueError(said)
        return ToolOutput(said * 200, (f"https://a.example/?k={quote(keys[0])}",))

    def details(self) -> dict[str, str]:
        return {"key": next(iter(self.config.keys.values())).get_secret_value()} if self.config.keys else {}
'''
CANARIES = {f"canary_{number}": f'kanariE-{number}-{"ü" * (number % 3)}"/{uuid.uuid4()}\\' for number in range(20)}


@pytest.fixture(scope="module")
def extended(watching: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A system with all of them."""
    folder = tmp_path_factory.mktemp("extending")
    for name in ("my_tools", "my_observers"):
        (folder / "config" / name).mkdir(parents=True)
    added: list[Any] = ["my_tools.broken:CoinTool", "my_observers.ledger:Ledger"]
    (folder / "config" / "my_tools" / "broken.py").write_text(f"import nowhere_to_be_found\n{COIN}")
    (folder / "config" / "my_observers" / "ledger.py").write_text(LEDGER.format(file=folder / "ledger.txt"))
    (folder / "config" / "my_tools" / "leaky.py").write_text(LEAKY)
    (folder / "config" / "my_tools" / "keyless.py").write_text(LEAKY.replace('"leak"', '"keyless"'))
    for name, canary in CANARIES.items():
        SecretStore(folder / "data").set(name, canary)
    added.append({"my_tools.leaky:LeakyTool": {"keys": {name: f"secret:{name}" for name in CANARIES}}})
    added.append({"my_tools.keyless:LeakyTool": {"keys": {"one": "secret:nowhere"}}})
    settings = {
        "system": {"participants": ["generator"], "more_participants": added},
        "journal": {"max_failures": 1},
    }
    config_dir = write_settings(folder / "config", settings)
    with WarmSystem(folder / "data", config_dir=config_dir, flags=["--backend", "stand_in"]) as system:
        live = watching(system, config_dir)
        with live.http:
            yield live


def test_a_tool_that_cannot_be_imported_stops_nobody_else_and_comes_back_when_it_is_mended(extended) -> None:
    broken = extended.participant("coin")  # by the name of the tool, not of its class
    assert broken["state"] == "failed"
    said = "cannot import my_tools.broken: ModuleNotFoundError at my_tools/broken.py:"
    assert said in broken["detail"] and "No module named 'nowhere_to_be_found'" in broken["detail"]
    health = asyncio.run(health_on_bus(extended.system.data_dir))
    [failed] = [found for found in check_participants(health) if found.name == "coin"]
    assert failed.status is FindingStatus.FAIL and "cannot import my_tools.broken" in failed.text
    (extended.config_dir / "my_tools" / "broken.py").write_text(COIN)
    extended.wait_until(lambda: extended.participant("coin")["state"] == "ready")
    answer = extended.ask("toss a coin")
    assert [(call["tool"], call["result"]) for call in answer["tool_calls"]] == [("coin", "the coin shows heads")]


def test_no_secret_of_a_tool_that_tells_it_in_every_way_gets_out_of_its_process(extended, capfd) -> None:
    extended.wait_until(lambda: extended.participant("leak").get("state") == "ready")
    answers = [extended.ask("leak it", session_id=f"leak-{number}") for number in range(3)]
    told = [call["error"]["kind"] if call["error"] else "told" for answer in answers for call in answer["tool_calls"]]
    assert told == ["tool_error", "internal", "told"]
    assert all("[secret:canary_7]" in json.dumps(answer) for answer in answers)
    assert extended.participant("leak")["details"]["key"] == "[secret:canary_0]"
    data = extended.system.data_dir
    told_anywhere = {str(path): path.read_bytes() for path in data.rglob("*") if path.is_file()}
    told_anywhere["http"] = json.dumps([answers, extended.health()]).encode()
    told_anywhere["printed"] = repr(capfd.readouterr()).encode()
    assert sum(b"[secret:canary_7]" in content for content in told_anywhere.values()) >= 4
    assert {name: where for name, canary in CANARIES.items() for where, content in told_anywhere.items()
            if canary.split("/")[1][:-1].encode() in content} == {}  # fmt: skip


def test_a_tool_whose_secret_is_missing_says_how_to_set_it(extended) -> None:
    keyless = extended.participant("keyless")
    assert keyless["state"] == "failed"
    assert (
        "keyless.yaml: keys.one: there is no secret nowhere; set it with 'local2 secret set nowhere'"
        in keyless["detail"]
    )


def test_what_a_bug_has_kept_from_an_observer_it_gets_when_that_is_mended(extended, capfd) -> None:
    def journal(*arguments: str) -> tuple[str, str]:
        with pytest.raises(SystemExit):
            main(["journal", *arguments, "--data-dir", str(extended.system.data_dir)])
        return capfd.readouterr()

    def dead() -> list[str]:
        return [line.split()[0] for line in journal("dead")[0].splitlines() if query_id in line]

    query_id = extended.ask("What is the capital of Norway?")["query_id"]
    extended.wait_until(lambda: bool(dead()))
    [number] = dead()
    ledger = extended.config_dir.parent / "ledger.txt"
    ledger.touch()
    given, error = journal("redeliver", number, "999999")
    assert given == f"redelivered to ledger: {number}\n"
    assert error == "local2: 999999: no dead letter of anybody; `local2 journal dead` lists those there are\n"
    extended.wait_until(lambda: "What is the capital of Norway?;" in ledger.read_text("utf-8"))
    assert dead() == []

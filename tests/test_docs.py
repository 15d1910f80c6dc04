"""What the pages say is what the code does: messages, header, states, routes, errors, settings and examples."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from local.api.app import routed
from local.api.http import STATUS
from local.bus.bus import Bus
from local.bus.envelope import Envelope
from local.bus.message import Message, message_classes
from local.bus.messages import GenerationToken, QueryReceived, ResponseGeneration
from local.bus.proxy import Proxy
from local.bus.zeromq import ZeroMQTransport
from local.core.bus_address import BusAddress
from local.generator.steps import TABLE
from local.queries.view import EVENT_KINDS
from local.tools.tool import Tool

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = [README, *ROOT.glob("docs/*.md"), ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
ARCHITECTURE, DELIVERY, PROTOCOL, HTTP = (
    (ROOT / "docs" / f"{name}.md").read_text("utf-8") for name in ("architecture", "delivery", "protocol", "http")
)
MAX_WIDTH = 120


def table(page: str, first_column: str) -> list[list[str]]:
    """The cells of the table whose head begins with that column, without head and rule."""
    _, found, rest = page.partition(f"\n| {first_column} |")
    assert found, f"there is no table whose first column is {first_column!r}"
    rows = rest.partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows]


def names(cell: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", cell))


def code_blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.M | re.S)


def row_of(kind: type[Message]) -> tuple[str, str, str, str]:
    subject = f"{kind.subject}<{kind.family_key}>" if kind.family_key else kind.subject
    fields = [(field.alias or name) + ("" if field.is_required() else "?") for name, field in kind.model_fields.items()]
    return f"`{subject}`", kind.__name__, str(kind.delivery), ", ".join(fields) or "–"


def test_the_table_of_messages_is_the_messages() -> None:
    documented = [tuple(row[:4]) for row in table(PROTOCOL, "subject")]
    assert sorted(documented) == sorted(map(row_of, message_classes()))


def test_the_table_of_the_header_is_the_header() -> None:
    documented = [name for row in table(PROTOCOL, "field") for name in names(row[0])]
    assert sorted(documented) == sorted(set(Envelope._fields) - {"payload"})


def test_the_diagram_of_the_turn_is_its_table() -> None:
    (diagram,) = code_blocks(ARCHITECTURE, "mermaid")
    lines = re.findall(r"^ +(\w+) --> (\w+): (.+)$", diagram, re.M)
    drawn = [(before, action, after) for before, after, actions in lines for action in actions.split(", ")]
    real = [(before, action, after) for before, actions in TABLE.items() for action, after in actions.items()]
    assert sorted(drawn) == sorted(real)


def test_the_table_of_routes_is_the_routes() -> None:
    paths = routed().openapi()["paths"]
    routes = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods}
    documented = {name for row in table(HTTP, "route") for name in names(row[0])}
    assert documented == routes | {"GET /openapi.json"}
    assert set(re.findall(r"`((?:GET|POST|PUT|PATCH|DELETE) /[^`?]*)`", HTTP)) == documented


def test_the_table_of_errors_is_the_errors() -> None:
    documented = {kind: int(status) for status, kinds in table(HTTP, "status") for kind in names(kinds)}
    assert documented == STATUS


def test_the_table_of_stream_events_is_the_events() -> None:
    documented = [name for row in table(HTTP, "event") for name in names(row[0])]
    assert sorted(documented) == sorted([*EVENT_KINDS.values(), "snapshot"])


def test_every_setting_that_the_readme_names_exists() -> None:
    for file, keys in (row for row in table(README.read_text("utf-8"), "file") if ".yaml" in row[0]):
        (name,) = names(file)
        settings = yaml.safe_load((ROOT / "config" / name).read_text("utf-8"))
        assert names(keys) <= settings.keys(), name


def test_the_tool_in_the_readme_is_a_tool() -> None:
    (code,) = code_blocks(README.read_text("utf-8"), "python")
    scope: dict[str, Any] = {"__name__": "my_tools.dice"}
    exec(compile(code, "dice.py", "exec", dont_inherit=True), scope)
    kind = scope["DiceTool"]
    assert issubclass(kind, Tool)
    schema = kind(kind.Config()).schema()
    assert (schema.tool, schema.description) == ("dice", "Roll dice and tell the numbers.")
    assert schema.parameters["properties"]["sides"]["description"] == "How many sides a die has"


async def test_the_client_in_the_protocol_page_gets_its_answer(tmp_path: Path) -> None:
    """With sockets in a folder in place of the ports, and a generator that knows one answer."""
    address = BusAddress(f"ipc://{tmp_path}/pub", f"ipc://{tmp_path}/sub")
    code = next(code for code in code_blocks(PROTOCOL, "python") if "import zmq" in code)
    for port, socket in ((5555, address.publish_to), (5556, address.subscribe_to)):
        code = code.replace(f"tcp://127.0.0.1:{port}", socket)
    with closing(Proxy(address)):
        async with Bus("generator", ZeroMQTransport(address)) as bus:

            def answer(envelope: Envelope) -> None:
                asked = QueryReceived.decode(envelope.payload)
                bus.post(GenerationToken(query_id=asked.query_id, index=0, text="17 * 23 ="), envelope.trace())
                response = ResponseGeneration(
                    query_id=asked.query_id, status="answered", query=asked.query, answer="391"
                )
                bus.post(response, envelope.trace())

            bus.subscribe(QueryReceived.subject, answer)
            await bus.ready()
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
            )
            try:
                said, errors = await asyncio.wait_for(process.communicate(), 30)
            finally:
                if process.returncode is None:
                    process.kill()
    assert errors == b""
    assert said.decode().splitlines()[-1] == "response.generation 391"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    links = re.findall(r"]\(([^)#]+)\)", page.read_text("utf-8"))
    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_source_file_that_a_page_names_exists(page: Path) -> None:
    named = [name for name in names(page.read_text("utf-8")) if re.fullmatch(r"[\w./]+/\w+\.(py|md|yaml)", name)]
    homes = (ROOT, ROOT / "src" / "local")
    assert [
        name for name in named if not name.startswith("my_") and not any((home / name).exists() for home in homes)
    ] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_line_is_too_wide_but_for_rows_of_tables(page: Path) -> None:
    lines = page.read_text("utf-8").splitlines()
    is_readme = page == README
    assert [line for line in lines if len(line) > MAX_WIDTH and (is_readme or not line.startswith("|"))] == []


def test_every_promise_of_delivery_names_a_test_that_there_is() -> None:
    promises = re.findall(r"^\| (?!promise|---)(.+) \| (.+) \|$", DELIVERY, re.M)
    assert len(promises) > 20
    assert [promise for promise, shown_by in promises if "::" not in shown_by] == []
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", DELIVERY)
    assert len(named) == DELIVERY.count("::")
    assert [test for file, test in named if not re.search(rf"^(async )?def {test}\(", _text(file), re.M)] == []


def _text(file: str) -> str:
    path = ROOT / file
    return path.read_text("utf-8") if path.exists() else ""


def test_the_examples_of_json_are_json_where_nothing_is_left_out() -> None:
    for line in re.findall(r"^data: (.+)$", HTTP, re.M):
        assert json.loads(line)

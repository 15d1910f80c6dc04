"""The documentation: what is generated is current, links lead somewhere, and what readers are to type works."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from local.api.app import ApiConfig, routed
from local.api.cells import CellsConfig
from local.bus.bus import Bus
from local.bus.envelope import Envelope
from local.bus.messages import GenerationToken, QueryReceived, ResponseGeneration
from local.bus.proxy import Proxy
from local.bus.zeromq import ZeroMQTransport
from local.cli.command_table import run_command
from local.core.bus_address import BusAddress
from local.core.capability import participants
from local.core.config import SystemConfig, load
from local.core.routing import ModelsConfig
from local.journal.server import JournalConfig
from local.queries.view import EVENT_KINDS
from local.stories.story import Story
from tests.warm.warm_system import WarmSystem

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md")])
TUTORIALS = [DOCS / "tutorials" / f"first-{name}.md" for name in ("conversation", "tool", "observer", "agent")]
SECONDS = 60.0


def text(page: Path) -> str:
    return page.read_text("utf-8")


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text(page), re.M | re.S)


def first_column(page: Path, head: str) -> list[str]:
    """The words in backticks in the first column of the table whose head begins so."""
    rows = text(page).partition(f"\n| {head} |")[2].partition("\n\n")[0].splitlines()[2:]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row.split(" | ")[0])]


# What is generated, and what the code has to agree with.


@pytest.fixture(scope="module")
def script() -> Any:
    """`scripts/make_reference.py`."""
    spec = importlib.util.spec_from_file_location("make_reference", ROOT / "scripts" / "make_reference.py")
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_the_reference_is_current(script: Any) -> None:
    stale = [name for name, made in script.pages().items() if text(script.FOLDER / name) != made]
    assert stale == [], "run .venv/bin/python scripts/make_reference.py"


def test_every_command_says_where_the_page_does_the_same_and_that_is_there(script: Any) -> None:
    """The screen, its part and the words of the control are in the page's sources; no command is left over."""
    page = ROOT / "src" / "local" / "page"
    screens = re.findall(r'id: "(\w+)", title:', text(page / "screens.js"))
    parts = {name: {""} for name in screens}
    for name in screens[1:]:  # the chat is drawn by the page itself
        parts[name] |= set(re.findall(r'{ id: "(\w+)", title:', text(page / name / "screen.js")))
    parts["settings"] |= {"secrets", *(file.stem for file in (ROOT / "config").glob("*.yaml"))}
    shared = [file for file in page.rglob("*.js") if file.relative_to(page).parts[0] not in (*screens, "vendor")]
    declared = {f"local2 {name} {word}".strip() for name, each in script.COMMANDS.items() for word in each.places()}
    wrong = []
    for _, command, _ in script._commands():
        declared.discard(command)
        place = script.place_of(command)
        if isinstance(place, script.OnPage):
            screen, _, part = place.address.partition("/")
            if part not in parts.get(screen, ()):
                wrong.append((command, place.address))
            files = [*shared, *(page / screen).rglob("*.js")]
            shown = "\n".join(map(text, files))
            words = re.findall(r"\*([^*]+)\*", place.control)
            wrong += [(command, word) for word in words or [place.control] if word not in shown]
    assert (wrong, sorted(declared)) == ([], [])


def test_the_pages_name_every_field_of_the_header_and_every_event_of_a_stream() -> None:
    assert set(first_column(DOCS / "reference" / "protocol.md", "field")) == set(Envelope._fields) - {"payload"}
    events = first_column(DOCS / "reference" / "http-guide.md", "event")
    assert sorted(events) == sorted([*EVENT_KINDS.values(), "snapshot"])


def test_the_site_is_built_and_every_link_in_it_leads_somewhere(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-f", ROOT / "mkdocs.yml", "-d", tmp_path]
    variables = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(words, capture_output=True, text=True, timeout=200, env=variables)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "index.html").is_file()


def test_every_link_outside_the_site_leads_somewhere() -> None:
    dead = []
    for page in ROOT.glob("*.md"):
        for link in re.findall(r"]\(([^)]+)\)", text(page)):
            file, _, anchor = link.partition("#")
            target = page.parent / file if file else page
            if "://" not in link and not (target.exists() and (not anchor or anchor in anchors(target))):
                dead.append((page.name, link))
    assert dead == []


def anchors(page: Path) -> set[str]:
    heads = re.findall(r"^#+ (.+)$", text(page), re.M)
    return {re.sub(r"[^\w -]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def test_every_page_that_the_code_and_the_settings_name_exists() -> None:
    sources = [file for kind in ("py", "md") for file in (ROOT / "src").rglob(f"*.{kind}")]
    sources += [*(ROOT / "config").glob("*.yaml"), *(ROOT / "scripts").rglob("*.py")]
    named = {name for file in sources for name in re.findall(r"\bdocs/[\w/-]+\.md", text(file))}
    assert [name for name in named - {"docs/api.md"} if not (ROOT / name).exists()] == []  # that one is Ollama's


def test_every_source_file_that_a_page_names_exists() -> None:
    homes = (ROOT, ROOT / "src" / "local")
    missing = []
    for page in PAGES:
        for name in re.findall(r"`((?:src|scripts|tests|config|\w+)/[\w./]+\.(?:py|yaml))`", text(page)):
            if not name.startswith(("my_", "agents/", "src/local/weather", "config/weather", "stories/web")):
                missing += [] if any((home / name).exists() for home in homes) else [(page.name, name)]
    assert missing == []


def test_the_architecture_names_folders_that_exist() -> None:
    page = text(ROOT / "docs" / "explanation" / "architecture.md")
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", page, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"\w+", row)}
    assert {"core", "memory"} <= named
    assert {name for name in named if not (ROOT / "src" / "local" / name).is_dir()} == set()


def test_every_route_and_every_setting_that_a_page_names_exists() -> None:
    routes = [
        re.compile(re.sub(r"{[^}]+}", "[^/]+", f"{method.upper()} {path}"))
        for path, methods in routed().openapi()["paths"].items()
        for method in methods
    ]
    keys = {file.name: yaml.safe_load(text(file)).keys() for file in (ROOT / "config").glob("*.yaml")}
    wrong = []
    for page in PAGES:
        for route in re.findall(r"`((?:GET|POST|PUT|PATCH|DELETE) /[^`? ]*)", text(page)):
            if route != "GET /openapi.json" and not any(each.fullmatch(route) for each in routes):
                wrong.append((page.name, route))
        for key, file in re.findall(r"`(\w+)(?:: [^`]*)?`\s(?:in|of)\s`(\w+\.yaml)`", text(page)):
            wrong += [(page.name, key)] if file in keys and key not in keys[file] else []
    assert wrong == []


# Examples.


def test_every_command_that_a_page_names_exists_with_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    """A command in a code span or a block; where it is a group, with the word after it."""
    helps: dict[tuple[str, ...], str] = {}
    wrong = []
    for page in PAGES:
        code = re.findall(r"`([^`\n]+)`", text(page)) + re.findall(r"^(?: {4}|\$ )(.+)$", text(page), re.M)
        for typed in re.findall(r"(?:^|[/ ])local2 ([a-z][^`|()#\n]*)", "\n".join(code), re.M):
            words = typed.partition(" -- ")[0].split()  # what follows is another program's
            command = tuple(word for word in words[:2] if re.fullmatch(r"[a-z_][a-z_-]*", word))
            if command not in helps:
                helps[command] = "" if run_command([*command, "--help"]) else capsys.readouterr().out
            options = [word for word in words if re.fullmatch(r"--?[a-z][a-z-]*", word)]
            if not {*options, "--help"} <= set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", helps[command])):
                wrong.append((page.name, typed))
    assert wrong == []


def test_examples_are_what_their_language_says(tmp_path: Path) -> None:
    """Python compiles, JSON parses, YAML is valid in the file of settings that has its keys, or is a story."""
    kinds: dict[str, Any] = {"system": SystemConfig, "models": ModelsConfig, "api": ApiConfig, "journal": JournalConfig}
    kinds["cells"] = CellsConfig
    for name, target in participants().items():
        module, _, kind = target.partition(":")
        kinds.setdefault(name, getattr(importlib.import_module(module), kind).Config)
    keys = {file.stem: yaml.safe_load(text(file)).keys() for file in (ROOT / "config").glob("*.yaml")}
    for page in PAGES:
        for block in blocks(page, "python"):
            compile(block, page.name, "exec", dont_inherit=True)
        for block in blocks(page, "json"):
            json.loads(block)
        for block in blocks(page, "yaml"):
            values = yaml.safe_load(block)
            if "turns" in values:
                Story.model_validate(values)
                continue
            file = next((name for name, known in keys.items() if values.keys() <= known), None)
            assert file, f"{page.name}: no file of settings has the keys {list(values)}"
            (tmp_path / f"{file}.yaml").write_text(block)
            load(file, kinds[file], [ROOT / "config", tmp_path])
    for line in re.findall(r"^data: (.+)$", text(DOCS / "reference" / "http-guide.md"), re.M):
        json.loads(line)


def test_the_readme_has_the_tool_of_the_tutorial() -> None:
    assert blocks(ROOT / "README.md", "python") == blocks(TUTORIALS[1], "python")


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of a reader who has written the files of the tutorials, beside a running system."""
    home = tmp_path_factory.mktemp("reader")
    config, added = home / "config", []
    for page in TUTORIALS:
        for file, code in re.findall(r"`(my_\w+/\w+\.py)`:\n\n```python\n(.*?)^```$", text(page), re.M | re.S):
            (config / file).parent.mkdir(parents=True, exist_ok=True)
            (config / file).write_text(code)
        added += [each for block in blocks(page, "yaml") for each in yaml.safe_load(block)["more_participants"]]
    folders = {"LOCAL2_DATA_DIR": f"{home}/data", "LOCAL2_CONFIG_DIR": str(config), "HOME": str(home)}
    with WarmSystem(home / "data", config_dir=config, flags=["--backend", "stand_in"]):
        (config / "system.yaml").write_text(f"more_participants: {json.dumps(added)}\n")  # the system runs already
        (config / "diary.yaml").write_text(f"file: {home}/diary.md\n")
        yield {**os.environ, **folders, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


def test_what_the_tutorials_say_to_type_prints_what_they_show(reader: dict[str, str]) -> None:
    for page in TUTORIALS:
        for block in blocks(page, "console"):
            for step in re.split(r"^\$ ", block, flags=re.M)[1:]:
                command, _, shown = step.partition("\n")
                said = typed(command.replace(".venv/bin/", ""), shown.splitlines(), reader)
                assert said is None, f"{page.name}: `{command}` printed\n{said}"


def typed(command: str, shown: list[str], variables: dict[str, str]) -> str | None:
    """What a command printed instead of what is shown; observers and agents get time to do their part."""
    words = shlex.split(command.replace("~", variables["HOME"]))
    wanted = [re.compile(".*".join(map(re.escape, re.split(r"\s*…\s*", line)))) for line in shown]
    end = time.monotonic() + SECONDS
    while True:
        done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, env=variables, input="")
        lines = iter([*done.stdout.splitlines(), *done.stderr.splitlines()])
        if done.returncode == 0 and all(any(each.search(line) for line in lines) for each in wanted):
            return None
        if time.monotonic() > end or "ask" in words:
            return done.stdout + done.stderr


async def test_the_client_in_the_protocol_page_gets_its_answer(tmp_path: Path) -> None:
    """With sockets in a folder in place of the ports, and a generator that knows one answer."""
    address = BusAddress(f"ipc://{tmp_path}/pub", f"ipc://{tmp_path}/sub")
    [code] = blocks(DOCS / "reference" / "protocol.md", "python")
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
                said, errors = await asyncio.wait_for(process.communicate(), 90)
            finally:
                if process.returncode is None:
                    process.kill()
    assert errors == b""
    assert said.decode().splitlines()[-1] == "response.generation 391"

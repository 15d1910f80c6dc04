"""The walls of the house: which package may import which, and that things are explained."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.source_trees import SOURCE, source_trees

pytestmark = pytest.mark.xdist_group("source trees")  # so that one worker alone reads them

SHARED = {
    "errors",
    "config",
    "environment",
    "failpoints",
    "backoff",
    "shipped",
    "tick",
    "containment",
    "private_file",
    "folder_lock",
    "secrets",
    "trust",
    "instructions",
}
ARROWS: dict[str, set[str]] = {
    "errors": {"errors"},
    "config": {"errors", "config", "environment", "shipped"},
    "environment": {"errors"},
    "failpoints": SHARED,
    "backoff": {"backoff"},
    "tick": {"tick"},
    "containment": {"containment"},
    "shipped": {"shipped"},
    "private_file": {"private_file"},
    "folder_lock": {"folder_lock"},
    "secrets": {"secrets", "private_file", "folder_lock", "errors", "config"},
    "instructions": {"instructions", "trust", "private_file", "folder_lock", "config", "errors"},
    "trust": {"trust", "private_file", "folder_lock", "errors"},
    "set_up": {"set_up"} | SHARED,
    "protocol": {"protocol"} | SHARED,
    "bus": {"bus", "protocol"} | SHARED,
    "journal.client": {"journal.client", "bus", "protocol"} | SHARED,
    "journal.core": {"journal.core", "protocol"} | SHARED,
    "journal.store": {"journal.store", "journal.core", "services"} | SHARED,
    "journal.server": {"journal.server", "journal.core", "journal.store", "runtime", "bus", "protocol"} | SHARED,
    "runtime": {"runtime", "bus", "protocol"} | SHARED,
    "models": {"models"} | SHARED,
    "services": {"services"} | SHARED,
    "queries": {"queries", "journal.client", "runtime", "bus", "protocol"} | SHARED,
    "agents": {"agents", "queries", "runtime", "journal.client", "bus", "protocol", "models", "services"} | SHARED,
    "tools": {"tools", "queries", "runtime", "protocol", "services"} | SHARED,
    "upkeep": {"upkeep", "journal.store", "agents", "services", "bus", "protocol"} | SHARED,
    "apps": {"apps", "agents", "tools", "queries", "journal.client", "journal.server", "runtime", "bus", "protocol"}
    | {"models", "upkeep", "set_up"}
    | SHARED,
}
# Inside a part: which of its packages know which others. A package that is not here knows all of its part.
INSIDE: dict[str, set[str]] = {
    "agents.answering": {"agents"} | {f"agents.answering.{name}" for name in ("context", "prompt", "taint")},
    "agents.answering.context": {"agents"},
    "agents.answering.prompt": {"agents.answering.context"},
    "agents.answering.taint": set(),
    "agents.grading": {"agents", "agents.answering.context"},
    "agents.remembering": {"agents"},
    "apps.api": {"apps", "apps.api.routes"},
    "apps.api.routes": {"apps.api"},
    "apps.doctor": {"apps"},
    "apps.journal": {"apps", "apps.tap"},
    "apps.tap": {"apps"},
    "models.servers": set(),
    "services.attachments": {"services.pages"},
    "services.classifying": {"services", "services.engrams"},
    "agents.reflecting": {"agents"},
    "services.reflecting": {"services", "services.judging", "services.schedules", "services.skills"},
    "services.embeddings": set(),
    "services.engrams": {"services", "services.embeddings"},
    "services.judging": set(),
    "services.pages": set(),
    "services.search": set(),
}
COMPOSITION_ROOT = Path("apps/run.py")
JOURNAL_READER = (Path("apps/journal"), "local.journal.store.")  # a command that reads the file, whoever owns it
ONLY_IN_BUS = {"zmq"}
NOT_IN_PROTOCOL = {"asyncio", "io", "pathlib", "socket", "subprocess", "threading", "time"}  # no I/O, no loop, no clock
ENVIRONMENT = {"environ", "environb", "getenv", "putenv"}


def part_of(*names: str) -> str:
    """The part of the house that a package or module, by its parts below `local`, belongs to; config_file.py belongs
    to config, and each package in the journal's is a part of its own."""
    first = names[0].removesuffix(".py")
    if first == "journal" and len(names) > 1 and names[1] != "__init__.py":
        return f"journal.{names[1]}"
    return "config" if first.startswith("config_") else first


def imports(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every module that a file imports anywhere, with the line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level:
                yield f"local.relative.{module}", node.lineno
            elif module == "local":
                yield from ((f"local.{alias.name}", node.lineno) for alias in node.names)
            else:
                yield module, node.lineno


def wrong_arrows(path: Path, tree: ast.AST) -> Iterator[str]:
    """Imports of one file, given by its path below `local`, that the design does not allow."""
    package = part_of(*path.parts)
    for module, line in imports(tree):
        top, _, rest = module.partition(".")
        target = part_of(*rest.split("."))
        may_read = path.parent == JOURNAL_READER[0] and module.startswith(JOURNAL_READER[1])
        if top == "local" and path != COMPOSITION_ROOT and not may_read and target not in ARROWS[package]:
            yield f"{path}:{line}: {package} must not import {module}"
        elif top in ONLY_IN_BUS and package != "bus":
            yield f"{path}:{line}: only bus may import {top}"
        elif package == "protocol" and top in NOT_IN_PROTOCOL:
            yield f"{path}:{line}: protocol does no I/O and knows no loop: {top}"


def package_of(module: str) -> str:
    """The package below `local` in which a module lies; nothing for what does not exist."""
    found = SOURCE.joinpath(*module.split(".")[1:])
    if found.is_dir():
        return ".".join(found.relative_to(SOURCE).parts)
    return ".".join(found.relative_to(SOURCE).parts[:-1]) if found.with_suffix(".py").exists() else ""


def wrong_arrows_inside(path: Path, tree: ast.AST) -> Iterator[str]:
    """Imports of one file from other packages of its own part that are not allowed."""
    package = ".".join(path.parts[:-1])
    for module, line in imports(tree):
        target = package_of(module)
        is_own = target.partition(".")[0] == path.parts[0] and target != package
        if package in INSIDE and is_own and target not in INSIDE[package]:
            yield f"{path}:{line}: {package} must not import {module}"


def arrows_in_use() -> Iterator[tuple[str, str]]:
    """Every arrow that some import needs, between parts and between packages of a part."""
    for path, tree in trees():
        for module, _ in imports(tree):
            if module.startswith("local.") and path != COMPOSITION_ROOT:
                yield part_of(*path.parts), part_of(*module.split(".")[1:])
                yield ".".join(path.parts[:-1]), package_of(module)


def environment_readers(path: Path, tree: ast.AST) -> Iterator[str]:
    """Places outside environment.py that read environment variables."""
    for node in ast.walk(tree):
        read = isinstance(node, ast.Attribute) and node.attr in ENVIRONMENT
        imported = isinstance(node, ast.ImportFrom) and any(alias.name in ENVIRONMENT for alias in node.names)
        if (read or imported) and path != Path("environment.py"):
            yield f"{path}:{node.lineno}: only environment.py reads the environment"


def undocumented(path: Path, tree: ast.Module) -> Iterator[str]:
    """Public classes and functions, and the file itself, without a docstring.

    A method that overrides one of a base class is described there.
    """
    if tree.body and not ast.get_docstring(tree):
        yield f"{path}: the file does not say what it is for"
    yield from _undocumented_in(path, tree.body, inherits=False)


def _undocumented_in(path: Path, body: list[ast.stmt], *, inherits: bool) -> Iterator[str]:
    for node in body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) or node.name.startswith("_"):
            continue
        if not ast.get_docstring(node) and (isinstance(node, ast.ClassDef) or not inherits):
            yield f"{path}:{node.lineno}: {node.name} has no docstring"
        if isinstance(node, ast.ClassDef):
            yield from _undocumented_in(path, node.body, inherits=bool(node.bases))


def trees() -> Iterator[tuple[Path, ast.Module]]:
    """Every source file by its path below `local`."""
    return ((Path(path), tree) for path, tree in source_trees().items())


def report(faults: Iterator[str]) -> None:
    """Fail with everything that is wrong at once."""
    found = list(faults)
    assert not found, "\n" + "\n".join(found)


def test_every_package_has_its_arrows() -> None:
    assert {part_of(*path.parts) for path, _ in trees()} - {"__init__", "journal"} == set(ARROWS)


def test_arrows_point_one_way() -> None:
    report(fault for path, tree in trees() for fault in wrong_arrows(path, tree))


def test_arrows_inside_a_part_are_those_of_the_table() -> None:
    report(fault for path, tree in trees() for fault in wrong_arrows_inside(path, tree))


def test_every_arrow_that_is_allowed_is_there() -> None:
    used = set(arrows_in_use())
    may_ask = {("agents", "queries"), ("tools", "queries")}  # so far only tests do
    allowed = {(package, target) for package, targets in ARROWS.items() for target in targets - SHARED - {package}}
    allowed |= {(package, target) for package, targets in INSIDE.items() for target in targets}
    in_vain = sorted(allowed - used - may_ask)
    report(f"{package} imports nothing of {target}: take the arrow out" for package, target in in_vain)


def test_the_reader_of_the_journal_s_file_reads_it() -> None:
    folder, read = JOURNAL_READER
    modules = [module for path, tree in trees() if path.parent == folder for module, _ in imports(tree)]
    assert any(module.startswith(read) for module in modules)


def test_only_one_module_reads_the_environment() -> None:
    report(fault for path, tree in trees() for fault in environment_readers(path, tree))


def test_everything_public_is_described() -> None:
    report(fault for path, tree in trees() for fault in undocumented(path, tree))


@pytest.mark.parametrize(
    ("path", "code", "fault"),
    [
        ("services/search/x.py", "from local.bus.bus import Bus", "services must not import local.bus.bus"),
        ("models/x.py", "import local.protocol.messages", "models must not import local.protocol.messages"),
        ("protocol/x.py", "from local import bus", "protocol must not import local.bus"),
        ("bus/x.py", "def f():\n    from local.runtime.machine import Machine", "bus/x.py:2: bus must not import"),
        ("agents/x.py", "from local.tools.tool import Tool", "agents must not import local.tools.tool"),
        ("agents/x.py", "from local.apps.run import run", "agents must not import local.apps.run"),
        ("apps/cli.py", "from local.services import engrams", "apps must not import local.services"),
        ("bus/x.py", "from local.journal.client.record import PAGE", "bus must not import local.journal.client"),
        ("journal/client/x.py", "import local.journal.core.delivery_core", "journal.client must not import"),
        ("config.py", "from local.bus.address import BusAddress", "config must not import local.bus.address"),
        ("runtime/x.py", "import zmq.asyncio", "only bus may import zmq"),
        ("apps/run.py", "from zmq import Context", "only bus may import zmq"),
        ("protocol/x.py", "import asyncio", "protocol does no I/O"),
        ("runtime/x.py", "from ..apps import run", "runtime must not import local.relative.apps"),
    ],
)
def test_a_wrong_arrow_is_found(path: str, code: str, fault: str) -> None:
    (found,) = wrong_arrows(Path(path), ast.parse(code))
    assert fault in found


def test_right_arrows_are_left_alone() -> None:
    assert not list(wrong_arrows(Path("apps/run.py"), ast.parse("from local.agents.answering.turn import Turn")))
    assert not list(
        wrong_arrows(Path("tools/x.py"), ast.parse("from local.services.pages.fetcher import Fetcher\nimport json"))
    )
    assert not list(wrong_arrows(Path("bus/x.py"), ast.parse("import zmq\nfrom local.protocol import subjects")))


@pytest.mark.parametrize(
    "code", ["import os\nos.environ['A']", "from os import getenv", "import os\nx = os.getenv('A')"]
)
def test_a_reader_of_the_environment_is_found(code: str) -> None:
    assert len(list(environment_readers(Path("agents/x.py"), ast.parse(code)))) == 1
    assert not list(environment_readers(Path("environment.py"), ast.parse(code)))


def test_what_is_not_described_is_found() -> None:
    code = "class A:\n    def f(self): ...\n    def _g(self): ...\nclass B(A):\n    '''B.'''\n    def f(self): ...\n"
    found = list(undocumented(Path("x.py"), ast.parse(code)))
    assert [fault.split(": ")[1] for fault in found] == [
        "the file does not say what it is for", "A has no docstring", "f has no docstring",
    ]  # fmt: skip

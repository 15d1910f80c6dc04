"""The import rules of the source: which folder may import which."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from local.core.capability import NAMES
from tests.source_trees import NEEDED, SOURCE, source_trees

pytestmark = pytest.mark.xdist_group("source trees")  # so that one worker alone reads them

# The permitted imports of each basic folder, besides itself; "journal.client" is that one module.
BASE: dict[str, set[str]] = {
    "core": set(),
    "bus": {"core"},
    "models": {"core"},
    "sandbox": {"core"},
    "stand_in": {"core", "models"},
    "runtime": {"core", "bus", "journal.client"},
    "queries": {"core", "bus", "runtime", "journal.client"},
    "tools": {"core", "bus", "runtime", "queries", "models", "sandbox"},
    "journal": {"core", "bus", "runtime"},
}
# The participants of `models` and their messages: a capability like the others, unknown to its clients.
MODEL_SERVICES = {"arbiter", "catalogue", "keeper", "leases", "lease_messages", "messages"}
SHARED = {"core", "bus", "runtime", "queries", "models", "sandbox", "tools", "journal.client"}
SHELLS = {"api", "cli"}  # they know no capability: routes and commands are given to them
ROUTES = {"routes", "import_routes", "profile_routes", "question_routes", "source_routes", "endpoint", "sessions"}
COMMANDS = {"commands", "file_commands", "stdio"}
ROOT = {"run", "stories"}  # the composition root imports everything, and so does what plays on a whole system
MESSAGES = {"messages", "lease_messages"}  # of another capability only these
ONLY_IN_BUS = "zmq"
ENVIRONMENT = {"environ", "environb", "getenv", "putenv"}


def imported(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every module that a file imports anywhere, with the line; a module imported from its package by its own name."""
    for node in relevant(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level:
            yield f"local.relative.{node.module}", node.lineno
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in modules() else str(node.module), node.lineno


@cache
def relevant(tree: ast.AST) -> list[ast.AST]:
    """Return the nodes that the rules check; walking through all of the source takes seconds, so once."""
    return [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom | ast.Attribute)]


@cache
def modules() -> frozenset[str]:
    """Return the names of all modules of the source."""
    return frozenset(".".join(("local", *Path(path).with_suffix("").parts)) for path in source_trees())


def allowed(path: Path, folder: str, module: str) -> bool:
    """Whether a file may import `folder.module` of the source."""
    own, name = path.parts[0], path.stem
    targets = {folder, f"{folder}.{module}"}
    is_service = own == "models" and name in MODEL_SERVICES
    if own == folder == "models" and not is_service and name not in ROUTES | COMMANDS and module in MODEL_SERVICES:
        return False
    if own in ROOT or folder == own or folder == "core" or (module in MESSAGES and own not in ("core", "bus")):
        return True
    if own in BASE and own != "journal" and not is_service and name not in ROUTES | COMMANDS:
        return bool(targets & BASE[own])
    if own in SHELLS:
        return bool(targets & SHARED)
    shell = {"api"} if name in ROUTES else {"cli"} if name in COMMANDS else set()
    return bool(targets & (SHARED | shell))


def wrong_imports(path: Path, tree: ast.AST) -> Iterator[str]:
    """Imports of one file, given by its path below `local`, that the rules do not allow."""
    for whole, line in imported(tree):
        top, *rest = whole.split(".")
        if top == ONLY_IN_BUS and path.parts[0] != "bus":
            yield f"{path}:{line}: only bus may import {ONLY_IN_BUS}"
        if top != "local" or len(path.parts) < 2 or path.parts[0] == "protocol":
            continue
        folder, module = rest[0] if rest else "", rest[1] if len(rest) > 1 else ""
        if not allowed(path, folder, module):
            yield f"{path}:{line}: {path.parts[0]} must not import {whole}"


def root_dependencies(path: Path, tree: ast.Module) -> Iterator[str]:
    """Imports by which a file of the composition root could not be imported without some optional capability: those
    outside of functions."""
    optional = {name for name in NAMES if name not in NEEDED} - {path.parts[0]}
    for whole, line in imported(ast.Module([node for node in tree.body if isinstance(node, ast.ImportFrom)], [])):
        top, folder, module = [*whole.split("."), "", ""][:3]
        if path.parts[0] in ROOT and top == "local" and folder in optional and module not in MESSAGES:
            yield f"{path}:{line}: import {whole} where it is used, as {folder} may have been taken out"


def environment_readers(path: Path, tree: ast.AST) -> Iterator[str]:
    """Places outside core/environment.py that read environment variables."""
    for node in relevant(tree):
        read = isinstance(node, ast.Attribute) and node.attr in ENVIRONMENT
        imports = isinstance(node, ast.ImportFrom) and any(alias.name in ENVIRONMENT for alias in node.names)
        if (read or imports) and path != Path("core/environment.py"):
            yield f"{path}:{node.lineno}: only core/environment.py reads the environment"


def trees() -> Iterator[tuple[Path, ast.Module]]:
    """Every source file by its path below `local`."""
    return ((Path(path), tree) for path, tree in source_trees().items())


def report(faults: Iterator[str]) -> None:
    """Fail with all faults at once."""
    found = list(faults)
    assert not found, "\n" + "\n".join(found)


def test_imports_keep_to_the_rules() -> None:
    report(fault for path, tree in trees() for fault in wrong_imports(path, tree))


def test_no_folders_import_each_other_in_a_circle() -> None:
    """Apart from routes and commands, which wire a capability to a frontend, and from messages."""
    arrows = defaultdict[str, set[str]](set)
    for path, tree in trees():
        if len(path.parts) > 1 and path.stem not in ROUTES | COMMANDS:
            for whole, _ in imported(tree):
                top, folder, module = [*whole.split("."), "", ""][:3]
                if top == "local" and folder != path.parts[0] and module not in MESSAGES:
                    arrows[path.parts[0]].add(folder)
    TopologicalSorter(arrows).prepare()  # raises CycleError, which names the circle


def test_the_root_can_do_without_any_optional_capability() -> None:
    report(fault for path, tree in trees() for fault in root_dependencies(path, tree))


def test_only_one_module_reads_the_environment() -> None:
    report(fault for path, tree in trees() for fault in environment_readers(path, tree))


def test_every_capability_is_a_folder() -> None:
    assert [name for name in NAMES if not (SOURCE / name / "__init__.py").exists()] == []


@pytest.mark.parametrize(
    ("path", "code", "fault"),
    [
        ("bus/x.py", "from local.runtime.machine import Machine", "bus must not import local.runtime.machine"),
        ("models/x.py", "import local.journal.store", "models must not import local.journal.store"),
        ("models/http.py", "from local.models.leases import Leases", "models must not import local.models.leases"),
        ("cron/store.py", "from local.api.http import JsonResponse", "cron must not import local.api.http"),
        ("cron/store.py", "from local.swarm.agents import AgentTree", "cron must not import local.swarm.agents"),
        ("api/app.py", "from local.cron.store import JobStore", "api must not import local.cron.store"),
        ("runtime/x.py", "import zmq.asyncio", "only bus may import zmq"),
        ("core/x.py", "from local.bus.bus import Bus", "core must not import local.bus.bus"),
    ],
)
def test_a_wrong_import_is_found(path: str, code: str, fault: str) -> None:
    (found,) = wrong_imports(Path(path), ast.parse(code))
    assert fault in found


def test_right_imports_are_left_alone() -> None:
    for path, code in (
        ("run/run.py", "from local.generator.turn import Turn"),
        ("cron/routes.py", "from local.api.http import JsonResponse"),
        ("cron/tools.py", "from local.swarm.messages import AgentStarted\nimport json"),
        ("bus/x.py", "import zmq\nfrom local.core import errors"),
    ):
        assert not list(wrong_imports(Path(path), ast.parse(code)))


@pytest.mark.parametrize(
    "code", ["import os\nos.environ['A']", "from os import getenv", "import os\nx = os.getenv('A')"]
)
def test_a_reader_of_the_environment_is_found(code: str) -> None:
    assert len(list(environment_readers(Path("cron/x.py"), ast.parse(code)))) == 1
    assert not list(environment_readers(Path("core/environment.py"), ast.parse(code)))

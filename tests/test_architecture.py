"""The import rules of the source: which folder may import which."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.core.capability import NAMES
from tests.source_trees import SOURCE, source_trees

pytestmark = pytest.mark.xdist_group("source trees")  # so that one worker alone reads them

# What each folder of the ground floor may import beside itself; "journal.client" is that one module.
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
SHARED = {"core", "bus", "runtime", "queries", "models", "sandbox", "tools", "journal.client"}
SHELLS = {"api", "cli"}  # they know no capability: routes and commands are given to them
ROUTES, COMMANDS = {"routes", "endpoint", "sessions"}, {"commands", "file_commands", "stdio"}
ROOT = {"run"}  # the composition root imports everything
MESSAGES = {"messages", "lease_messages"}  # of another capability only these
ONLY_IN_BUS = "zmq"
ENVIRONMENT = {"environ", "environb", "getenv", "putenv"}

# Imports that break the rules and are still to be mended: by folder, what it imports.
TO_MEND: dict[str, set[str]] = {
    "api": {
        "attachments.attachments",
        "instructions.profiles",
        "mcp.endpoint",
        "run.newcomers",
        "run.settings_files",
        "users.budgets",
        "users.users",
    },
    "attachments": {"web.fetch"},
    "bus": {"swarm.messages"},
    "cli": {
        "api.server",
        "generator.agent",
        "generator.config",
        "instructions.trust",
        "memory.agent",
        "memory.service",
        "reflection.commands",
        "run.backend",
        "run.overrides",
        "run.participant",
        "run.setup",
        "run.template_modules",
        "run.warm_up",
        "shell.shell",
        "stories.temporary_system",
        "web.search",
    },
    "critic": {"generator.context"},
    "files": {"attachments.attachments", "instructions.trust", "permissions.grants", "shell.shell", "skills.tools"},
    "generator": {
        "attachments.attachments",
        "cli.client",
        "instructions.profiles",
        "instructions.texts",
        "memory.commands",
        "memory.service",
        "memory.store",
        "permissions.gatekeeper",
        "permissions.policy",
        "run.participant",
        "web.fetch",
    },
    "instructions": {"files.workspace"},
    "mcp": {"skills.library"},
    "models": {
        "bus.bus",
        "bus.envelope",
        "bus.message",
        "bus.vocabulary",
        "critic.agent",
        "critic.judge",
        "critic.self_test",
        "generator.config",
        "memory.classifier_test",
        "run.backend",
        "run.installer",
        "run.setup",
        "runtime.participant",
    },
    "reflection": {"instructions.texts", "memory.store", "skills.library"},
    "runtime": {"models.settings"},
    "shell": {"permissions.grants"},
    "skills": {
        "files.tools",
        "files.workspace",
        "instructions.commands",
        "instructions.texts",
        "instructions.trust",
        "mcp.commands",
        "mcp.settings",
        "mcp.tools",
        "permissions.grants",
    },
    "stories": {
        "cli.client",
        "cli.conversation",
        "instructions.trust",
        "mcp.client",
        "mcp.commands",
        "mcp.settings",
        "mcp.tools",
        "shell.shell",
    },
    "swarm": {"instructions.profiles"},
    "tools": {"permissions.grants"},
    "users": {"api.clients", "cli.logs", "cli.main"},
}


def imported(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every module that a file imports anywhere, with the line; a module imported from its package by its own name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level:
            yield f"local.relative.{node.module}", node.lineno
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                is_module = SOURCE.joinpath(*whole.split(".")[1:]).with_suffix(".py").exists()
                yield whole if is_module else str(node.module), node.lineno


def allowed(path: Path, folder: str, module: str) -> bool:
    """Whether a file may import `folder.module` of the source."""
    own, name = path.parts[0], path.stem
    targets = {folder, f"{folder}.{module}"}
    if own in ROOT or folder == own or folder == "core" or (module in MESSAGES and own not in ("core", "bus")):
        return True
    if own in BASE and own != "journal" and name not in ROUTES | COMMANDS:
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
        if not allowed(path, folder, module) and f"{folder}.{module}" not in TO_MEND.get(path.parts[0], set()):
            yield f"{path}:{line}: {path.parts[0]} must not import {whole}"


def environment_readers(path: Path, tree: ast.AST) -> Iterator[str]:
    """Places outside core/environment.py that read environment variables."""
    for node in ast.walk(tree):
        read = isinstance(node, ast.Attribute) and node.attr in ENVIRONMENT
        imports = isinstance(node, ast.ImportFrom) and any(alias.name in ENVIRONMENT for alias in node.names)
        if (read or imports) and path != Path("core/environment.py"):
            yield f"{path}:{node.lineno}: only core/environment.py reads the environment"


def trees() -> Iterator[tuple[Path, ast.Module]]:
    """Every source file by its path below `local`."""
    return ((Path(path), tree) for path, tree in source_trees().items())


def report(faults: Iterator[str]) -> None:
    """Fail with everything that is wrong at once."""
    found = list(faults)
    assert not found, "\n" + "\n".join(found)


def test_imports_keep_to_the_rules() -> None:
    report(fault for path, tree in trees() for fault in wrong_imports(path, tree))


def test_an_import_that_was_mended_is_taken_off_the_list() -> None:
    used = {
        (path.parts[0], ".".join(whole.split(".")[1:3]))
        for path, tree in trees()
        for whole, _ in imported(tree)
        if whole.startswith("local.") and not allowed(path, *[*whole.split("."), ""][1:3])
    }
    listed = {(own, each) for own, mended in TO_MEND.items() for each in mended}
    report(f"{own} no longer imports {each}" for own, each in sorted(listed - used))


def test_only_one_module_reads_the_environment() -> None:
    report(fault for path, tree in trees() for fault in environment_readers(path, tree))


def test_every_capability_is_a_folder() -> None:
    assert [name for name in NAMES if not (SOURCE / name / "__init__.py").exists()] == []


@pytest.mark.parametrize(
    ("path", "code", "fault"),
    [
        ("bus/x.py", "from local.runtime.machine import Machine", "bus must not import local.runtime.machine"),
        ("models/x.py", "import local.journal.store", "models must not import local.journal.store"),
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

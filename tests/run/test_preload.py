"""What the children share is in the template before they are forked from it."""

import json
import subprocess
import sys

import pytest

from local.core.capability import participants
from local.core.shipped import shipped_dir
from local.runtime.warm_up import PRELOAD

LOOK = """
import importlib, json, sys, threading
for name in sys.argv[1:]:
    importlib.import_module(name)
import local.core.config_file, local.tools.tool, zmq
tools = local.tools.tool.Tool.__subclasses__()
for each in tools:
    tools += each.__subclasses__()
tools = [each for each in tools if each.__module__.startswith("local.") and "run" in vars(each)]
print(json.dumps({
    "modules": [name for name, module in sys.modules.items() if module is not None],
    "tools": [each.name for each in tools],
    "worked_out": local.tools.tool.Tool.arguments.__func__.cache_info().currsize,
    "parsed": local.core.config_file._parsed.cache_info().currsize,
    "threads": threading.active_count(), "contexts": zmq.Context._instance is not None,
}))
"""


@pytest.fixture(scope="module")
def found() -> dict[str, object]:
    """What is found in a process that has imported what the template does, in the same order."""
    names = ["local.runtime.template", *PRELOAD]
    done = subprocess.run([sys.executable, "-c", LOOK, *names], capture_output=True, text=True, check=True)
    seen: dict[str, object] = json.loads(done.stdout)
    return seen


def test_the_template_has_what_every_child_would_import_or_make_for_itself(found: dict[str, object]) -> None:
    modules = found["modules"]
    assert isinstance(modules, list)
    takes_part = {target.partition(":")[0] for target in participants().values()}
    late = {"httpcore", "anyio._backends._asyncio", "encodings.utf_8_sig", "ollama"}
    late |= {"local.journal.server", "local.run.run", "local.cli.command_table"}
    assert (takes_part | late) - set(modules) == set()
    assert found["parsed"] == len(list((shipped_dir() / "config").glob("*.yaml")))
    assert (found["threads"], found["contexts"]) == (1, False), "it is to be forked"
    assert found["worked_out"] == len(found["tools"]) > 4  # type: ignore[arg-type]  # a list


def test_the_template_has_nothing_that_is_heavy_and_rarely_needed(found: dict[str, object]) -> None:
    modules = found["modules"]
    assert isinstance(modules, list)
    heavy = {
        "numpy",
        "chromadb",
        "tokenizers",
        "trafilatura",
        "lxml",
        "mcp",
        "mcp_types",
    }
    assert heavy & set(modules) == set()

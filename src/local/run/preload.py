"""The modules that are imported once for the supervisor, the template and all children. They must not create a ZeroMQ
context or an event loop.
"""

from __future__ import annotations

import encodings.utf_8_sig  # noqa: F401 - as all these, imported for the pages it shares
import importlib
from contextlib import suppress

import anyio._backends._asyncio  # noqa: F401 - httpx does so with the first connection
import httpx
import ollama  # noqa: F401 - a model client imports it when it is first asked

import local.api.app
import local.cli.command_table
import local.journal.server
import local.run.participant
import local.run.processes
import local.run.run  # noqa: F401 - as all these
from local.api.app import routed
from local.core import config_file
from local.core.capability import participants
from local.core.errors import ConfigError
from local.core.shipped import shipped_dir
from local.tools.tool import Tool

for target in participants().values():
    importlib.import_module(target.partition(":")[0])
for path in (shipped_dir() / "config").glob("*.yaml"):
    with suppress(ConfigError):  # its user reports the fault
        config_file.read(path)
tools = Tool.__subclasses__()
for tool in tools:
    tools += tool.__subclasses__()
    if "run" in vars(tool):
        tool.arguments()
routed()
httpx.AsyncHTTPTransport(verify=False)  # imports httpx's deferred modules, and initialises OpenSSL: a megabyte

"""What is imported and made once for the supervisor, the template and all children. No context and no event loop may
come of it."""

from __future__ import annotations

import encodings.utf_8_sig  # noqa: F401 - as all these, imported for the pages it shares
import importlib
import sys
from contextlib import suppress

import anyio._backends._asyncio  # noqa: F401 - httpx does so with the first connection
import httpx

import local.apps.api.participant
import local.apps.command_table
import local.apps.participant
import local.apps.processes
import local.apps.run
import local.journal.server.journal  # noqa: F401 - as all these
from local import config_file
from local.apps.api.app import routed
from local.config import short_names
from local.errors import ConfigError
from local.shipped import shipped_dir
from local.tools.tool import Tool

for target in short_names().values():
    importlib.import_module(target.partition(":")[0])
for path in (shipped_dir() / "config").glob("*.yaml"):
    with suppress(ConfigError):  # whoever needs that one says so
        config_file.read(path)
tools = Tool.__subclasses__()
for tool in tools:
    tools += tool.__subclasses__()
    if "run" in vars(tool):
        tool.arguments()
sys.modules["pydantic.v1"] = None  # type: ignore[assignment]  # FastAPI looks for its models, and would import it
routed()
del sys.modules["pydantic.v1"]
httpx.AsyncHTTPTransport(verify=False)  # imports what httpx puts off; OpenSSL sets itself up, which is a megabyte

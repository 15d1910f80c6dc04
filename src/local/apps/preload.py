"""What the template process imports and makes once for all children. No context and no event loop may come of it."""

from __future__ import annotations

import encodings.utf_8_sig  # noqa: F401 - as all these, imported for the pages it shares

import anyio._backends._asyncio  # noqa: F401 - httpx does so with the first connection
import httpx
import pydantic.v1  # noqa: F401 - FastAPI does so with the first route

import local.agents.arbiter
import local.agents.critic
import local.agents.generator
import local.agents.memory
import local.agents.reward
import local.apps.api.door
import local.apps.participant
import local.apps.processes
import local.journal.server.journal  # noqa: F401 - as all these
from local.tools.compare_answers import CompareAnswersTool
from local.tools.search_memory import SearchMemoryTool
from local.tools.web_fetch import WebFetchTool
from local.tools.web_search import WebSearchTool

for tool in (WebSearchTool, WebFetchTool, SearchMemoryTool, CompareAnswersTool):
    tool.arguments()
httpx.AsyncHTTPTransport(verify=False)  # imports what httpx puts off; OpenSSL sets itself up, which is a megabyte

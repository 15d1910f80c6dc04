"""Web search, and the text of web pages."""

from local.core.capability import Capability

CAPABILITY = Capability(
    participants={"web_search": "local.web.search:WebSearchTool", "web_fetch": "local.web.fetch:WebFetchTool"},
)

"""Web search, and the text of web pages."""

from local.core.capability import Capability

CAPABILITY = Capability(
    messages=("local.web.messages",),
    routes=("local.web.routes:add_routes",),
    requests=("local.web.messages:SearchTrial",),
    participants={"web_search": "local.web.search:WebSearchTool", "web_fetch": "local.web.fetch:WebFetchTool"},
)

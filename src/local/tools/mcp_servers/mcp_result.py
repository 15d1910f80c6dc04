"""What a server's tool has given back, as text for the model."""

from __future__ import annotations

import json

from mcp.types import (
    AudioContent,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)

from local.errors import ToolError
from local.tools.tool_output import ToolOutput


def output_of(result: CallToolResult) -> ToolOutput:
    """The texts of a result; what is no text is named. Raises `ToolError` for what the server calls an error."""
    text = "\n\n".join(map(_text, result.content))
    if not text and result.structured_content is not None:
        text = json.dumps(result.structured_content, ensure_ascii=False)
    if result.is_error:
        raise ToolError(text or "it failed, and does not say why")
    return ToolOutput(text)


def _text(block: ContentBlock) -> str:
    match block:
        case TextContent():
            return block.text
        case ImageContent() | AudioContent():
            return f"[{block.type} of the type {block.mime_type}, left out]"
        case ResourceLink():
            return f"[{block.name}: {block.uri}]"
        case EmbeddedResource():
            return getattr(block.resource, "text", "") or f"[{block.resource.uri}, left out]"

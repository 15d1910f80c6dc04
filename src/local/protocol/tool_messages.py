"""Calls of tools and their results: the public path."""

from __future__ import annotations

from local.bus.messages import ToolCallRecord as ToolCallRecord
from local.bus.messages import ToolRequest as ToolRequest
from local.bus.messages import ToolResult as ToolResult
from local.bus.messages import ToolSchema as ToolSchema
from local.bus.messages import ToolSchemaRequest as ToolSchemaRequest

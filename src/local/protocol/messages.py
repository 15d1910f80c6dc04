"""The messages that every participant may use: the public path."""

from __future__ import annotations

from local.bus.message import ErrorInfo as ErrorInfo
from local.bus.message import Message as Message
from local.bus.message import RespondentMessage as RespondentMessage
from local.bus.messages import AgentTransition as AgentTransition
from local.bus.messages import AnswerDialog as AnswerDialog
from local.bus.messages import AnswerOptions as AnswerOptions
from local.bus.messages import BusDead as BusDead
from local.bus.messages import ChildStatus as ChildStatus
from local.bus.messages import ClientCall as ClientCall
from local.bus.messages import ContextCompacted as ContextCompacted
from local.bus.messages import ContextGauge as ContextGauge
from local.bus.messages import ContextProvided as ContextProvided
from local.bus.messages import ConversationRequest as ConversationRequest
from local.bus.messages import ConversationResult as ConversationResult
from local.bus.messages import GenerationProgress as GenerationProgress
from local.bus.messages import GenerationThinking as GenerationThinking
from local.bus.messages import GenerationToken as GenerationToken
from local.bus.messages import GenerationWaiting as GenerationWaiting
from local.bus.messages import ModelSpan as ModelSpan
from local.bus.messages import ParticipantStatus as ParticipantStatus
from local.bus.messages import QueryAccepted as QueryAccepted
from local.bus.messages import QueryCancel as QueryCancel
from local.bus.messages import QueryFailed as QueryFailed
from local.bus.messages import QueryReceived as QueryReceived
from local.bus.messages import ResponseGeneration as ResponseGeneration
from local.bus.messages import SessionBranched as SessionBranched
from local.bus.messages import SessionChanged as SessionChanged
from local.bus.messages import SessionDeleted as SessionDeleted
from local.bus.messages import SessionImported as SessionImported
from local.bus.messages import SessionTitled as SessionTitled
from local.bus.messages import ToolCallRecord as ToolCallRecord
from local.bus.messages import ToolRequest as ToolRequest
from local.bus.messages import ToolResult as ToolResult
from local.bus.messages import ToolSchema as ToolSchema
from local.bus.messages import ToolSchemaRequest as ToolSchemaRequest
from local.bus.messages import TurnTotals as TurnTotals
from local.bus.messages import UsageInfo as UsageInfo
from local.swarm.messages import AgentTask as AgentTask

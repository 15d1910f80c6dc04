"""The dotted routing keys. A subject that ends in a dot is a family: the rest of the key is a name."""

from __future__ import annotations

import re
from functools import lru_cache

QUERY_RECEIVED = "query.received"
QUERY_ACCEPTED = "query.accepted"
QUERY_FAILED = "query.failed"
QUERY_CANCEL = "query.cancel"
GENERATION_THINKING = "generation.thinking"
GENERATION_TOKEN = "generation.token"
RESPONSE_GENERATION = "response.generation"
ANSWER_DIALOG = "answer.dialog"
TOOL_SCHEMA = "tool.schema"
TOOL_SCHEMA_REQUEST = "tool.schema.request"
TOOL_REQUEST = "tool.request."
TOOL_RESULT = "tool.result."
CONVERSATION_REQUEST = "conversation.request."
CONVERSATION_RESULT = "conversation.result."
CONTEXT_COMPACTED = "context.compacted"
AGENT_TRANSITION = "agent.transition"
PARTICIPANT_STATUS = "participant.status"
BUS_PROBE = "bus.probe."
BUS_GAP = "bus.gap"
BUS_DEAD = "bus.dead"
CRITIQUE_RESULT = "critique.result"
PAIRWISE_RESULT = "pairwise.result"
COMPARISON_REQUEST = "comparison.request"
COMPARISON_RESULT = "comparison.result"
USER_FEEDBACK = "user.feedback"
REWARD_EVENT = "reward.event"
MEMORY_REQUEST = "memory.request."
MEMORY_RESULT = "memory.result."
MEMORY_INGESTED = "memory.ingested"
MEMORY_CLASSIFIED = "memory.classified"
MEMORY_ANNOTATED = "memory.annotated"
MEMORY_DELETED = "memory.deleted"
MEMORY_FACTS = "memory.facts"
SESSION_DELETED = "session.deleted"
MODEL_LEASE_CLAIM = "model.lease.claim"
MODEL_LEASE_STATE = "model.lease.state"
JOURNAL_OPENED = "journal.opened"
JOURNAL_CONFIRMED = "journal.confirmed."
JOURNAL_FLOORS = "journal.floors"
JOURNAL_ATTACH = "journal.attach"
JOURNAL_DETACH = "journal.detach"
JOURNAL_FENCED = "journal.fenced."
JOURNAL_DELIVER = "journal.deliver."
JOURNAL_ACK = "journal.ack"
JOURNAL_WORKING = "journal.working"
JOURNAL_READ = "journal.read"
JOURNAL_ENTRIES = "journal.entries"
JOURNAL_REDACT = "journal.redact"
JOURNAL_REDACTED = "journal.redacted"

MAX_LENGTH = 200
_GRAMMAR = re.compile(r"[a-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")


@lru_cache(4096)
def is_subject(text: str) -> bool:
    """Whether `text` is a whole subject: dotted words, at most 200 characters."""
    return len(text) <= MAX_LENGTH and _GRAMMAR.fullmatch(text) is not None


def is_family(text: str) -> bool:
    """Whether `text` names a family of subjects ("tool.result.") or everything ("")."""
    return text == "" or text.endswith(".")


def covers(subscription: str, subject: str) -> bool:
    """Whether a subscription to a subject or a family ("tool.result.", "" for everything) takes `subject` in."""
    return subject.startswith(subscription) if is_family(subscription) else subject == subscription


def is_said_again(subject: str) -> bool:
    """Whether what is lost on a subject is said again, so that status beats do not tell of it."""
    return subject.startswith("journal.")


def subscription(subject: str) -> bytes:
    """The byte prefix that subscribes to exactly this subject, or to every subject of a family.

    The NUL that ends a subject in a frame keeps `tool.schema` from also getting `tool.schema.request`.
    """
    return subject.encode() if is_family(subject) else subject.encode() + b"\0"

"""What is said of conversations: how they are called, where they branch off, that they are deleted, what is in them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from local.protocol.answer_options import AnswerOptions
from local.protocol.message import Data, Delivery, ErrorInfo, Message, RespondentMessage

ConversationVerb = Literal["sessions", "session", "turns", "find", "change", "branch", "delete", "query", "prompt"]


class SessionChanged(Message):
    """The generator, when a user has given a session a title, or pinned it, or taken that back: this holds from now on.
    Without `title` it is called as its first query."""

    subject = "session.changed"
    delivery = Delivery.CONFIRMED
    session_id: str
    title: str | None = None
    pinned: bool = False
    changed_at: float  # seconds since 1970


class SessionBranched(Message):
    """The generator, when a user goes on from an earlier place of a session: `session_id` begins with the turns that
    `branched_from` has before the query `before`, which are not said again."""

    subject = "session.branched"
    delivery = Delivery.CONFIRMED
    session_id: str
    branched_from: str
    before: str
    incognito: bool = False
    branched_at: float  # seconds since 1970


class SessionDeleted(Message):
    """The generator, when a session was deleted or an incognito one has ended: nobody is to keep anything of it."""

    subject = "session.deleted"
    delivery = Delivery.CONFIRMED
    deleted_session_id: str


class RecalledExchange(Data):
    """An exchange of an earlier conversation that was put before the model, shortened. `asked_at` is in seconds since
    1970; `origin` is that of its engram; `tainted` says that untrusted content may be in it."""

    engram_id: str
    query: str
    answer: str
    asked_at: float
    origin: str = "user"
    tainted: bool = False


class ContextProvided(RespondentMessage):
    """A respondent, at most once for each turn, when it puts something that is known of the user before the model
    without being asked: facts (lines), facts that were told earlier in the conversation and no longer hold (`gone`),
    and recalled exchanges. `engram_ids` are the engrams that all of this is from; `tokens` is what the whole context
    block takes, estimated."""

    subject = "context.provided"
    facts: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    recalled: tuple[RecalledExchange, ...] = ()
    engram_ids: tuple[str, ...] = ()
    tokens: int = 0

    def shown(self) -> dict[str, Any]:
        """What of it people see, as JSON."""
        return self.model_dump(mode="json", include={"facts", "gone", "recalled", "engram_ids", "tokens"})


class ConversationRequest(Message):
    """A door that wants to see the generator's record, or to have it changed: sessions (`key` is the user's whose they
    are, none is everybody's; `query`, `cursor`, `limit`, `among`: only these), session, query, turns (those `before` or
    `after` the query `at` or a `position`, or the one that is there: `order`), find (`query`), change (`labels`: title,
    pinned), branch (`before`, `branch_id`), delete. `key` is the session's id, of query the query's. With `of_user`
    another user's session is as if it were not there. Or it wants to see the system prompt of that user's queries
    with these `options`: prompt."""

    subject = "conversation.request."
    delivery = Delivery.EPHEMERAL
    family_key = "verb"
    is_request = True
    answered_by = "generator"
    verb: ConversationVerb
    key: str = ""
    of_user: str | None = None
    query: str = ""
    cursor: str = ""
    limit: int = Field(50, ge=1, le=1000)
    among: tuple[str, ...] | None = None
    order: Literal["before", "after", "at"] = "before"
    at: str = ""
    position: int | None = None
    labels: dict[str, str | bool | None] = Field(default_factory=dict)
    before: str = ""
    branch_id: str = ""
    options: AnswerOptions | None = None


class ConversationResult(Message):
    """The generator's answer to that: `value` is the record, or `error` says why there is none."""

    subject = "conversation.result."
    delivery = Delivery.EPHEMERAL
    family_key = "verb"
    verb: str
    value: dict[str, Any] | None = None
    error: ErrorInfo | None = None

"""Answers to recent requests, so that a repeated request gets the same answer and is not done twice."""

from __future__ import annotations

from collections import OrderedDict

from local.protocol.messages import Message

MAX_REPLIES = 512


class RecentReplies:
    """Remembers request ids: in flight, or answered with what. Beyond 512 the oldest answered one is forgotten."""

    def __init__(self) -> None:
        self._replies: OrderedDict[str, Message | None] = OrderedDict()

    def begin(self, request_id: str) -> bool:
        """Begin a request; False if it is known already."""
        if request_id in self._replies:
            return False
        self._replies[request_id] = None
        if len(self._replies) > MAX_REPLIES:
            answered = next((known for known, reply in self._replies.items() if reply is not None), None)
            if answered is not None:
                del self._replies[answered]
        return True

    def settle(self, request_id: str, reply: Message) -> None:
        """Note the answer."""
        self._replies[request_id] = reply

    def answer(self, request_id: str) -> Message | None:
        """The answer to a known request; None while it is in flight."""
        return self._replies.get(request_id)

"""A process with two tools: one that looks something up, and one whose effect must not come about twice."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from simulated.world import Process

from local.bus.envelope import Envelope
from local.bus.message import ErrorInfo
from local.bus.messages import ToolRequest, ToolResult
from local.core.errors import ToolError
from local.runtime.participant import RecentReplies
from local.tools.effects import StoredEffect, key_of, on_record, outcome_unknown, request_digest


@dataclass
class Ledger:
    """The tool's database, as tools/effects.py has it; and what happened in the world outside."""

    owner: str = ""
    calls: dict[str, StoredEffect] = field(default_factory=dict)
    effects: Counter[str] = field(default_factory=Counter)  # by call_id

    def begin(self, key: str, asked: str) -> StoredEffect | None:
        """Note that a call begins, unless it is on record: then return what is."""
        known = self.calls.get(key)
        if known is None:
            self.calls[key] = StoredEffect(asked, None)
        return known

    def end(self, key: str, outcome: str) -> str:
        """Note how it ended, unless that is on record; returns what is. Open to former owners, too."""
        known = self.calls.get(key)
        if known is None:
            return outcome
        self.calls[key] = StoredEffect(known.asked, known.outcome or outcome)
        return known.outcome or outcome


class Tool(Process):
    """Answers a request, and each repeat of it, with one result. Stops what belongs to a cancelled query."""

    role = "tool"
    disk: Ledger

    def start(self) -> None:
        self.disk.owner = self.instance
        self.replies = RecentReplies()
        self.cancelled: set[str] = set()
        self.running: dict[str, ToolRequest] = {}  # by call_id: effects that have not happened yet

    def on_request(self, request: ToolRequest) -> None:
        """A call, perhaps not for the first time: every process that makes it uses the same request id."""
        if not self.replies.begin(request.call_id):
            reply = self.replies.answer(request.call_id)
            if reply is not None:
                self.send("generator", "result", reply)
        elif request.tool == "lookup":
            self.later(self.random.random() ** 4 * 2, self.reply, result_of(request, result="found"))
        else:
            self.later(self.random.random() * 0.02, self.begin, request)

    def begin(self, request: ToolRequest) -> None:
        """Look into the ledger, and run what is not in it; where a newer process has taken over, that one answers."""
        if not self.owns_disk:
            return
        known = self.disk.begin(key_of(request), request_digest(request))
        if known is None:
            self.running[request.call_id] = request
            self.later(self.random.random() ** 2 * 1.5, self.run, request.call_id)
            if request.query_id in self.cancelled:
                self.cut_off(request)
            return
        try:
            self.end(request, on_record(request, known))
        except ToolError as error:
            self.reply(failure_of(request, error))

    def run(self, call_id: str) -> None:
        """The effect; its record is another step."""
        request = self.running.pop(call_id, None)
        if request is not None:
            self.disk.effects[call_id] += 1
            self.later(self.random.random() * 0.02, self.end, request, result_of(request, result="done"))

    def end(self, request: ToolRequest, result: ToolResult) -> None:
        """The record; the reply, which tells what is on record, is another step."""
        on_record = self.disk.end(key_of(request), result.encode().decode())
        self.later(0, self.reply, ToolResult.decode(on_record.encode()))

    def on_heard(self, envelope: Envelope) -> None:
        """A query was cancelled."""
        self.cancelled.add(envelope.correlation_id)
        for request in list(self.running.values()):
            if request.query_id == envelope.correlation_id:
                self.cut_off(request)

    def cut_off(self, request: ToolRequest) -> None:
        """Stop an effect that has begun; who knows how far it got."""
        del self.running[request.call_id]
        self.disk.effects[request.call_id] += self.random.random() < 0.5
        self.end(request, failure_of(request, outcome_unknown("it was cancelled")))

    def reply(self, result: ToolResult) -> None:
        """Answer, and remember the answer for whoever asks again."""
        self.replies.settle(result.call_id, result)
        self.send("generator", "result", result)


def failure_of(request: ToolRequest, error: ToolError) -> ToolResult:
    """An error that the model can read."""
    return result_of(request, error=ErrorInfo(kind=error.kind, message=str(error)))


def result_of(request: ToolRequest, result: str | None = None, error: ErrorInfo | None = None) -> ToolResult:
    """How a call ended."""
    return ToolResult(query_id=request.query_id, call_id=request.call_id, tool=request.tool, result=result, error=error)

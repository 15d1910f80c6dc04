"""Does what a turn decides, as generator/runner.py does in asyncio's time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulated import model
from simulated.conversation import StoredTurn

from local.bus.message import ErrorInfo
from local.bus.messages import ToolCallRecord, ToolRequest, ToolResult
from local.generator.context import Limits, TokenMeter
from local.generator.fitting import plan
from local.generator.steps import NextStep, Step, TurnInput, TurnLimits, TurnState
from local.generator.turn import Turn

if TYPE_CHECKING:
    from simulated.generator import Ahead, Generator

RESEND_AFTER = 0.5
TOOL_SECONDS = 1.5


class TurnRun:
    """One turn in the hands of one process."""

    def __init__(self, generator: Generator, stored: StoredTurn) -> None:
        self.generator, self.stored, self.disk = generator, stored, generator.disk
        question = TurnInput(stored.query_id, "A", stored.query_id, self.disk.history(stored), False, TurnLimits(3))
        self.turn = Turn(question, self.kept_steps())
        self.asked: dict[str, tuple[ToolRequest, float]] = {}  # by call_id: what is open, since when
        self.records: dict[str, ToolCallRecord] = {}
        self.ahead: Ahead | None = None
        self.is_put_off = False  # to be continued by whoever is given it again

    @property
    def has_ended(self) -> bool:
        """Whether nothing more is to be done for it here."""
        return self.is_put_off or self.turn.state is TurnState.PUBLISHING

    def begin(self) -> None:
        """From the first model call, or what was computed of it ahead, or the last stored step."""
        self.ahead = self.generator.take(self.stored)
        self.follow(self.turn.begin())

    def cancel(self) -> None:
        """End it with what was said so far."""
        if not self.has_ended:
            self.follow(self.turn.cancel())

    def follow(self, following: NextStep) -> None:
        """Do what comes next."""
        match following:
            case NextStep.CALL_MODEL:
                is_ahead = self.ahead is not None and self.ahead.said
                self.generator.later(0 if is_ahead else self.generator.random.random() ** 4, self.model_speaks)
            case NextStep.CALL_TOOLS:
                self.call_tools()
            case NextStep.PUBLISH:
                self.asked.clear()
                self.generator.end(self.stored, self.turn.response())

    def model_speaks(self) -> None:
        """One message of the model, which kills the process if the query is poison."""
        if self.has_ended:
            return
        messages = list(plan(self.turn.parts(()), TokenMeter(), Limits(1_000_000)).messages)
        if self.generator.owns_disk and len(self.stored.steps) > len(self.turn.steps):
            self.disk.repeated.append(self.stored.query_id)
        if model.is_poison(self.stored.query_id, model.rounds_of(messages)):
            self.disk.poisoned[self.stored.query_id] += 1
            self.generator.world.kill(self.generator)
            return
        ahead, self.ahead = self.ahead, None
        for delta in (ahead and ahead.said) or model.say(messages, self.generator.random):
            self.turn.receive(delta)
        self.generator.tell(self.stored.query_id)
        self.step_taken(self.turn.message_ended())

    def step_taken(self, following: NextStep) -> None:
        """Store a step before the next one begins; the last one is stored with the end."""
        if following is NextStep.PUBLISH:
            self.follow(following)
            return
        first = len(self.stored.steps)
        self.generator.write(
            self.disk.add_steps, self.stored, first, self.turn.steps[first:],
            then=lambda: self.go_on(following), failed=self.not_stored,
        )  # fmt: skip

    def not_stored(self) -> None:
        """The disk is full."""
        if not self.has_ended:
            self.generator.put_off(self.stored)

    def go_on(self, following: NextStep) -> None:
        """After a step was stored, unless the turn was cancelled in the meantime."""
        if not self.has_ended:
            self.follow(following)

    def call_tools(self) -> None:
        """Ask for the results that no earlier process has kept."""
        calls, self.records = self.turn.calls_to_make(model.OFFERED, self.kept_results())
        for call in calls:
            request = ToolRequest(query_id=self.stored.query_id, call_id=call.call_id, tool=call.tool, args=call.args)
            self.asked[call.call_id] = (request, self.generator.world.now)
            self.ask(request)
        self.turn.requests_sent()
        self.settle_if_complete()

    def kept_steps(self) -> list[Step]:
        """What an earlier process has done of the turn."""
        return self.stored.steps

    def kept_results(self) -> dict[str, ToolCallRecord]:
        """What an earlier process has heard of the calls of the last step."""
        return self.stored.results

    def ask(self, request: ToolRequest) -> None:
        """Send a request, perhaps again."""
        if self.generator.owns_disk and request.call_id in self.stored.results:
            self.disk.repeated.append(request.call_id)
        self.generator.send("tool", "request", request)

    def put_off(self) -> None:
        """Stop where it stands."""
        self.is_put_off = True
        self.asked.clear()

    def beat(self, now: float) -> None:
        """Ask again for what is silent; give up what has been silent for long."""
        for request, since in list(self.asked.values()):
            if now - since > TOOL_SECONDS:
                late = ErrorInfo(kind="timeout", message="did not answer")
                self.hear(ToolResult(query_id=request.query_id, call_id=request.call_id, tool=request.tool, error=late))
            elif now - since >= RESEND_AFTER:
                self.ask(request)

    def hear(self, result: ToolResult) -> None:
        """A result; it counts for its call alone, and once."""
        request, _ = self.asked.pop(result.call_id, (None, 0.0))
        if request is None:
            return
        record = ToolCallRecord(
            call_id=request.call_id, tool=request.tool, args=request.args, result=result.result, error=result.error
        )
        self.records[record.call_id] = record
        if self.asked:
            self.generator.write(self.disk.keep_result, self.stored, record, then=lambda: None, failed=lambda: None)
        self.settle_if_complete()

    def settle_if_complete(self) -> None:
        """With the last result the turn goes on."""
        if not self.asked:
            self.step_taken(self.turn.tools_settled(self.records))

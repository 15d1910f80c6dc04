"""The generator: one turn for each query that the journal delivers, acknowledged when its outcome is confirmed."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from simulated import model
from simulated.consumer import Consumer
from simulated.conversation import Conversation, Outcome, StoredTurn, outcome_of
from simulated.turn_run import TurnRun

from local.bus.envelope import Envelope
from local.bus.messages import ResponseGeneration, ToolResult
from local.generator.queue import SessionQueue
from local.journal.messages import JournalDetach
from local.models.chat import Delta, Json

CANCELS = "generator_cancels"  # a consumer of its own: a cancellation does not wait behind the query it is for
RETRY_SECONDS = 1.0
SILENCE_SECONDS = 3.0


@dataclass
class Ahead:
    """A turn that is not on record: what it was computed from, and what the model said."""

    query_id: str
    history: tuple[Json, ...]
    said: list[Delta] = field(default_factory=list)

    def fits(self, stored: StoredTurn, disk: Conversation) -> bool:
        """Whether that turn is this one, new, and of the same past."""
        is_new = not stored.steps and stored.query_id not in disk.cancelled
        return self.query_id == stored.query_id and is_new and self.history == disk.history(stored)


class Generator(Consumer):
    """Leaves in order now and then."""

    role = "generator"
    run_class = TurnRun
    disk: Conversation

    def start(self) -> None:
        self.line = SessionQueue(max_running=3, max_waiting=16)
        self.given: dict[str, int] = {}  # the journal's numbers, by query_id
        self.arriving: dict[str, deque[Envelope]] = {}  # what is not stored yet, by session
        self.runs: dict[str, TurnRun] = {}
        self.ahead: dict[str, Ahead] = {}  # by session: what is computed and not on record
        self.serve(CANCELS, self.cancel)
        super().start()
        if not self.world.is_healthy and self.random.random() < 0.3:
            self.later(self.random.random() * 3, self.leave)

    def leave(self) -> None:
        """An orderly goodbye."""
        for name in self.holds:
            self.post(JournalDetach(consumer=name))
        self.world.kill(self)

    def beat(self) -> None:
        for run in list(self.runs.values()):
            run.beat(self.world.now)
        super().beat()

    def on_heard(self, envelope: Envelope) -> None:
        """The live copy of a query: the model is asked ahead, unless something of the session is open here."""
        query_id, session_id = envelope.correlation_id, envelope.session_id or ""
        is_open = session_id in self.ahead or self.arriving.get(session_id) or self.line.of(session_id)
        if self.owns_disk and not is_open and query_id not in self.disk.turns and not model.is_poison(query_id):
            history = self.disk.history(StoredTurn(query_id, session_id))
            ahead = self.ahead[session_id] = Ahead(query_id, history)
            self.later(self.random.random() ** 4, self.compute, ahead)
            self.later(SILENCE_SECONDS, self.give_up, session_id, ahead)

    def compute(self, ahead: Ahead) -> None:
        """The model has spoken; nobody hears of it."""
        messages = [*ahead.history, {"role": "user", "content": ahead.query_id}]
        ahead.said = model.say(messages, self.random)
        self.hold(ahead)

    def hold(self, ahead: Ahead) -> None:
        """Until the journal has delivered the query."""

    def give_up(self, session_id: str, ahead: Ahead) -> None:
        """The journal is silent."""
        if self.ahead.get(session_id) is ahead:
            del self.ahead[session_id]

    def take(self, stored: StoredTurn) -> Ahead | None:
        """What was computed of a turn that may begin; whatever else there is of its session did not know of it."""
        ahead = self.ahead.pop(stored.session_id, None)
        return ahead if ahead is not None and ahead.fits(stored, self.disk) else None

    def tell(self, query_id: str) -> None:
        """What the model says, as it says it."""
        self.emit(Envelope("generation.token", f"token of {query_id}", self.role, self.instance, 1, query_id, b""))

    def receive(self, number: int, envelope: Envelope) -> None:
        session_id = envelope.session_id or ""
        self.given[envelope.correlation_id] = number
        arriving = self.arriving.setdefault(session_id, deque())
        arriving.append(envelope)
        if len(arriving) == 1:
            self.store_next(session_id)

    def store_next(self, session_id: str) -> None:
        """Those of one session one after the other: none may overtake another that could not be stored."""
        query_id = self.arriving[session_id][0].correlation_id
        self.write(
            self.disk.accept, query_id, session_id,
            then=lambda: self.accepted(session_id), failed=lambda: self.not_stored(session_id),
        )  # fmt: skip

    def not_stored(self, session_id: str) -> None:
        """The disk is full."""
        self.later(RETRY_SECONDS, self.store_next, session_id)

    def accepted(self, session_id: str) -> None:
        """One is safely stored."""
        arriving = self.arriving[session_id]
        self.enter(arriving.popleft())
        if arriving:
            self.store_next(session_id)

    def enter(self, envelope: Envelope) -> None:
        """Publish its end if it has one, end it if nobody gets it any more, else let it wait for its turn."""
        stored = self.disk.turns[envelope.correlation_id]
        if stored.outcome is not None:
            self.publish_outcome(stored, stored.outcome)
        elif envelope.subject == "bus.dead":
            self.end_unbegun(stored, b"given up")
        elif stored.query_id in self.disk.cancelled and not stored.steps:
            self.end_unbegun(stored, b"cancelled before it began")
        else:
            self.begin(self.line.arrive(stored.query_id, stored.session_id))

    def begin(self, query_ids: list[str]) -> None:
        """These may run now."""
        for query_id in query_ids:
            run = self.runs[query_id] = self.run_class(self, self.disk.turns[query_id])
            run.begin()
            if query_id in self.disk.cancelled:
                run.cancel()

    def cancel(self, number: int, envelope: Envelope) -> None:
        """Somebody wants no answer any more: remember that, then act on it."""
        query_id = envelope.correlation_id
        self.write(
            self.disk.cancel, query_id,
            then=lambda: self.act_on_cancel(number, query_id), failed=lambda: self.release(number, CANCELS),
        )  # fmt: skip

    def act_on_cancel(self, number: int, query_id: str) -> None:
        """A query that waits ends unbegun, one that runs with what was said so far."""
        self.ack(number, CANCELS)
        if self.line.leave(query_id):
            self.end_unbegun(self.disk.turns[query_id], b"cancelled before it began")
        elif query_id in self.runs:
            self.runs[query_id].cancel()

    def on_result(self, result: ToolResult) -> None:
        """A tool has answered, perhaps not for the first time."""
        if result.query_id in self.runs:
            self.runs[result.query_id].hear(result)

    def end(self, stored: StoredTurn, response: ResponseGeneration) -> None:
        """Store the end of a turn before anybody hears of it."""
        self.store_end(stored, outcome_of(response), response.answer)

    def end_unbegun(self, stored: StoredTurn, reason: bytes) -> None:
        """A query that never ran, or not to its end."""
        self.store_end(stored, ("query.failed", reason))

    def store_end(self, stored: StoredTurn, outcome: Outcome, answer: str = "") -> None:
        """Then publish it."""
        self.write(
            self.disk.finish, stored, outcome, answer,
            then=lambda: self.publish_outcome(stored, outcome), failed=lambda: self.put_off(stored),
        )  # fmt: skip

    def put_off(self, stored: StoredTurn) -> None:
        """The disk is full: a turn that runs goes on from its last step in a while, before all others of its session;
        another one is handed back."""
        if stored.query_id in self.runs:
            self.runs[stored.query_id].put_off()
            self.later(RETRY_SECONDS, self.begin, [stored.query_id])
        else:
            self.release(self.given[stored.query_id])

    def publish_outcome(self, stored: StoredTurn, outcome: Outcome) -> None:
        """As it is stored, for the first time or again, under an id that is always the same."""
        subject, payload = outcome
        self.publish(subject, f"outcome of {stored.query_id}", stored.query_id, stored.session_id, payload)

    def confirmed(self, envelope: Envelope) -> None:
        """The outcome is on record: the query is done, and the next of its session may begin."""
        query_id = envelope.correlation_id
        self.ack(self.given[query_id])
        if self.runs.pop(query_id, None) is not None:
            self.begin(self.line.done(query_id))

"""The simulator finds faults: a participant with one breaks a promise in some schedule."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pytest
from simulated.consumer import Memory, Observer
from simulated.conversation import Outcome, StoredTurn
from simulated.frontend import Api
from simulated.generator import Ahead, Generator
from simulated.journal import Journal
from simulated.schedule import Schedule
from simulated.tool import Ledger, Tool, result_of
from simulated.turn_run import TurnRun
from simulated.world import Process, Violation

from local.bus.envelope import Envelope
from local.bus.messages import ToolCallRecord, ToolRequest
from local.generator.steps import Step
from local.journal.delivery import Confirm, ConsumerDecision, Decision, Deliver, DurableConsumer
from local.journal.messages import JournalDeliver


class ConfirmsBeforeItCommits(Journal):
    def on_envelope(self, envelope: Envelope) -> None:
        self.carry_out([Confirm(envelope.instance, [envelope.id])])
        self.later(0.2, super().on_envelope, envelope)


class NeverDeliversAgain(Journal):
    def beat(self) -> None:
        self.later(1000.0, self.beat)


class HasNoLanes(Journal):
    def consumer(self, name: str) -> DurableConsumer:
        consumer = super().consumer(name)
        add = consumer.add

        def add_anywhere(number: int, lane: str, now: float) -> list[ConsumerDecision]:
            return add(number, str(number), now)

        consumer.add = add_anywhere  # type: ignore[method-assign]
        return consumer


class DoesNotSayWhatComesBefore(Journal):
    def carry_out(self, decisions: Sequence[Decision]) -> None:
        super().carry_out([replace(d, after=0) if isinstance(d, Deliver) else d for d in decisions])


class NeverParks(Journal):
    def consumer(self, name: str) -> DurableConsumer:
        consumer = super().consumer(name)
        consumer._suspects.max_deaths = 1_000_000
        return consumer


class LetsSuspectsHoldUpEverybody(Journal):
    def consumer(self, name: str) -> DurableConsumer:
        consumer = super().consumer(name)
        following = consumer._next
        consumer._next = lambda now: None if consumer._suspects._running else following(now)  # type: ignore[method-assign]
        return consumer


class ForgetsWhatIsToBeGivenAgain(Journal):
    def resume(self) -> None:
        pass


class NeverConfirmsWhatIsRecorded(Journal):
    def confirm_recorded(self) -> None:
        pass


class NeverResends(Api):
    def resend(self, frame: bytes) -> None:
        pass


class DropsInSilence(Api):
    def dropped(self, gaps: Mapping[str, int]) -> None:
        pass


class TakesWhatComesFirst(Generator):
    def on_told(self, envelope: Envelope) -> None:
        if envelope.subject.startswith(JournalDeliver.subject):
            first = JournalDeliver.decode(envelope.payload).model_copy(update={"after": 0})
            envelope = envelope._replace(payload=first.encode())
        super().on_told(envelope)


class RemembersNoSteps(TurnRun):
    def kept_steps(self) -> list[Step]:
        return []


class StartsOver(Generator):
    run_class = RemembersNoSteps


class RemembersNoResults(TurnRun):
    def kept_results(self) -> dict[str, ToolCallRecord]:
        return {}


class AsksForResultsThatItHas(Generator):
    run_class = RemembersNoResults


class AcknowledgesBeforeTheOutcomeIsConfirmed(Generator):
    def publish_outcome(self, stored: StoredTurn, outcome: Outcome) -> None:
        super().publish_outcome(stored, outcome)
        self.ack(self.given[stored.query_id])


class PublishesBeforeItStores(Generator):
    def store_end(self, stored: StoredTurn, outcome: Outcome, answer: str = "") -> None:
        self.publish_outcome(stored, outcome)
        super().store_end(stored, outcome, answer)


class OverlooksThatItWasReplaced(Generator):
    owns_disk = True  # type: ignore[assignment]

    def replaced(self) -> None:
        pass


class LetsOthersOvertakeWhatItCannotStore(Generator):
    def not_stored(self, session_id: str) -> None:
        self.arriving[session_id].rotate(-1)
        self.store_next(session_id)


class LetsOthersOvertakeWhatIsPutOff(Generator):
    def put_off(self, stored: StoredTurn) -> None:
        super().put_off(stored)
        self.begin(self.line.done(stored.query_id))


class GoesOnAfterACancellation(Generator):
    def act_on_cancel(self, number: int, query_id: str) -> None:
        if query_id in self.runs:
            stored = self.disk.turns[query_id]
            self.publish("query.failed", f"outcome of {query_id}", query_id, stored.session_id, b"cancelled")
        super().act_on_cancel(number, query_id)


class TellsWhatIsNotOnRecord(Generator):
    def hold(self, ahead: Ahead) -> None:
        self.tell(ahead.query_id)


class TakesWhatWasComputedFromAnotherPast(Generator):
    def take(self, stored: StoredTurn) -> Ahead | None:
        ahead = self.ahead.get(stored.session_id)
        return ahead if ahead is not None and ahead.query_id == stored.query_id and not stored.steps else None


class BuriesTheDead(Generator):
    def receive(self, number: int, envelope: Envelope) -> None:
        if envelope.subject == "bus.dead":
            self.ack(number)
        else:
            super().receive(number, envelope)


class HasAForgetfulLedger(Tool):
    def start(self) -> None:
        super().start()
        self.disk.calls.clear()


class RepeatsWhatWasInterrupted(Tool):
    def begin(self, request: ToolRequest) -> None:
        ledger: Ledger = self.disk
        ledger.calls = {key: call for key, call in ledger.calls.items() if call.outcome is not None}
        super().begin(request)


class RecordsBeforeItActs(Tool):
    def begin(self, request: ToolRequest) -> None:
        super().begin(request)
        if request.call_id in self.running:
            self.end(request, result_of(request, result="done"))


class AcknowledgesBeforeItRemembers(Observer):
    def receive(self, number: int, envelope: Envelope) -> None:
        super().receive(number, envelope)
        self.ack(number)


class RemembersTwice(Observer):
    def remember(self, number: int, query_id: str) -> None:
        memory: Memory = self.disk
        self.write(memory.answers.append, query_id, then=lambda: self.later(1.0, self.ack, number), failed=lambda: None)


# By participant with a fault: the promise that it breaks, and the seed of a schedule in which that shows soon.
FAULTS: dict[type[Process], tuple[str, int]] = {
    ConfirmsBeforeItCommits: ("it does not end", 1),
    NeverDeliversAgain: ("it does not end", 5),
    HasNoLanes: ("a session is in order", 4),
    DoesNotSayWhatComesBefore: ("a session is in order", 0),
    NeverParks: ("it does not end", 8),
    ForgetsWhatIsToBeGivenAgain: ("it does not end", 217),
    LetsSuspectsHoldUpEverybody: ("a suspect holds up its own session alone", 12),
    NeverConfirmsWhatIsRecorded: ("it does not end", 3),
    NeverResends: ("it does not end", 9),
    DropsInSilence: ("what was recorded is on record or reported as a gap", 59),
    TakesWhatComesFirst: ("a session is in order", 3),
    StartsOver: ("nothing is asked again that is on record", 2),
    AsksForResultsThatItHas: ("nothing is asked again that is on record", 0),
    AcknowledgesBeforeTheOutcomeIsConfirmed: ("the observer has each answer once", 239),
    PublishesBeforeItStores: ("all copies of an outcome are equal", 45),
    OverlooksThatItWasReplaced: ("all copies of an outcome are equal", 53),
    LetsOthersOvertakeWhatItCannotStore: ("a session is in order", 16),
    LetsOthersOvertakeWhatIsPutOff: ("a session is in order", 66),
    GoesOnAfterACancellation: ("all copies of an outcome are equal", 1),
    TellsWhatIsNotOnRecord: ("nothing is heard of what is not on record", 0),
    TakesWhatWasComputedFromAnotherPast: ("a session is in order", 4),
    BuriesTheDead: ("it does not end", 0),
    HasAForgetfulLedger: ("nothing has an effect twice", 47),
    RepeatsWhatWasInterrupted: ("nothing has an effect twice", 40),
    RecordsBeforeItActs: ("an effect that is reported was done", 29),
    AcknowledgesBeforeItRemembers: ("the observer has each answer once", 3),
    RemembersTwice: ("the observer has each answer once", 27),
}
SLOW = {  # a schedule that does not end takes a while
    ConfirmsBeforeItCommits,
    NeverDeliversAgain,
    NeverParks,
    ForgetsWhatIsToBeGivenAgain,
    NeverConfirmsWhatIsRecorded,
    NeverResends,
    BuriesTheDead,
}


@pytest.mark.parametrize(
    "faulty",
    [pytest.param(each, marks=[pytest.mark.thorough] if each in SLOW else [], id=each.__name__) for each in FAULTS],
)
def test_the_simulator_finds_a_planted_fault(faulty: type[Process]) -> None:
    broken_promise, first = FAULTS[faulty]
    assert any(broken_promise in violation for violation in violations(faulty, first))


def violations(faulty: type[Process], first: int) -> Iterator[str]:
    for seed in range(first, first + 300):
        try:
            Schedule(seed, **{faulty.role: faulty}).run()
        except Violation as violation:
            yield str(violation)

"""Journal, publishers and durable consumers under seeded faults: the promises hold, and the simulator can tell."""

import pytest
from simulated.consumers import Observer
from simulated.journal import Journal
from simulated.publishers import Api
from simulated.schedule import Schedule
from simulated.world import Process, Violation

from local.protocol.envelope import Envelope
from local.runtime.durable_consumer import ConsumerDecision, DurableConsumer
from local.runtime.journal_desk import Confirm


@pytest.mark.timeout(900)  # 100,000 schedules, when asked for, take two minutes
def test_every_promise_is_kept_in_every_schedule(seeds: range) -> None:
    for seed in seeds:
        Schedule(seed).run()


def test_a_seed_always_gives_the_same_schedule() -> None:
    ends = []
    for _ in range(2):
        schedule = Schedule(7)
        schedule.run()
        ends.append((schedule.world.now, schedule.journal_disk.envelopes, schedule.generated.done))
    assert ends[0] == ends[1]


class ConfirmsBeforeItCommits(Journal):
    """Planted fault."""

    def on_envelope(self, envelope: Envelope) -> None:
        super().on_envelope(envelope)
        self.carry_out([Confirm(envelope.instance, [envelope.id])])


class NeverDeliversAgain(Journal):
    """Planted fault."""

    def beat(self) -> None:
        self.later(1000.0, self.beat)


class HasNoLanes(Journal):
    """Planted fault."""

    def consumer(self, name: str, subject: str) -> DurableConsumer:
        class Unordered(DurableConsumer):
            def add(self, number: int, lane: str, now: float) -> list[ConsumerDecision]:
                return super().add(number, str(number), now)

        return Unordered(name, [subject], ack_wait=1.0, max_in_hand=3, state=self.disk.state(name))


class NeverParks(Journal):
    """Planted fault."""

    def consumer(self, name: str, subject: str) -> DurableConsumer:
        consumer = super().consumer(name, subject)
        consumer.max_deliver = 1_000_000
        return consumer


class IgnoresWhereABufferBegins(Journal):
    """Planted fault."""

    def on_begins_after(self, instance: str, floors: dict[str, int]) -> None:
        pass


class AcknowledgesBeforeItWorks(Observer):
    """Planted fault."""

    def on_deliver(self, instance: str, number: int, attempt: int, envelope: Envelope) -> None:
        super().on_deliver(instance, number, attempt, envelope)
        if instance == self.instance:
            self.ack(number)


class NeverResends(Api):
    """Planted fault."""

    def beat(self) -> None:
        self.later(1000.0, self.beat)


@pytest.mark.parametrize(
    ("role", "faulty", "broken_promise"),
    [
        ("journal", ConfirmsBeforeItCommits, "what was accepted is on record"),
        ("journal", NeverDeliversAgain, "it does not end"),
        ("journal", HasNoLanes, "a session is in order"),
        ("journal", NeverParks, "it does not end"),
        ("journal", IgnoresWhereABufferBegins, "it does not end"),
        ("observer", AcknowledgesBeforeItWorks, "the observer sees every answer"),
        ("api", NeverResends, "it does not end"),
    ],
)
def test_the_simulator_finds_a_planted_fault(role: str, faulty: type[Process], broken_promise: str) -> None:
    with pytest.raises(Violation, match=rf"^seed \d+: {broken_promise}$"):
        for seed in range(300):
            Schedule(seed, **{role: faulty}).run()

"""One schedule: what is asked of the system, and what must be true of it in the end."""

from __future__ import annotations

from collections import Counter

from simulated.consumers import Consumer, Effects, Generator, Observer
from simulated.journal import CONSUMERS, Journal, JournalDisk
from simulated.publishers import Api, Clients
from simulated.world import Process, Violation, World


class Schedule:
    """A few sessions with a few queries each; any of the processes can be another one, to see what would break."""

    def __init__(self, seed: int, *, journal: type[Process] = Journal, observer: type[Process] = Observer,
                 api: type[Process] = Api) -> None:  # fmt: skip
        self.journal_disk, self.generated, self.observed = JournalDisk(), Effects(), Effects()
        self.clients = Clients({})
        disks = {"journal": self.journal_disk, "api": self.clients}
        disks |= {"generator": self.generated, "observer": self.observed}
        self.world = World(seed, journal, api, Generator, observer, disks=disks)
        random = self.world.random
        for session in range(random.randint(1, 4)):
            queries = [f"{session}.{n}{' poison' * (random.random() < 0.05)}" for n in range(random.randint(1, 3))]
            self.clients.to_ask[str(session)] = queries
        self.asked = [query for queries in self.clients.to_ask.values() for query in queries]

    def run(self) -> None:
        """Raises `Violation` with the seed and the broken promise."""
        self.world.run(self.is_finished)
        for promise, is_kept in self.promises().items():
            if not is_kept:
                raise Violation(f"seed {self.world.seed}: {promise}")

    def is_finished(self) -> bool:
        """Whether nobody waits for anything any more."""
        living = list(self.world.living.values())
        if any(self.clients.to_ask.values()) or not all(len(processes) == 1 for processes in living):
            return False
        return not any(self.is_busy(process) for (process,) in living)

    def is_busy(self, process: Process) -> bool:
        """Whether a process still wants something, were it a journal's confirmation or a consumer's acknowledgement."""
        match process:
            case Journal():
                unwritten = process.envelopes or process.records
                return bool(unwritten) or any(len(process.desk.consumer(name)) for name in CONSUMERS)
            case Api():
                return bool(len(process.confirmations) or process.recorded.next_due is not None)
            case Consumer():
                return bool(len(process.confirmations))
        return False

    def promises(self) -> dict[str, bool]:
        """Each with whether it was kept."""
        numbers, parked = self.journal_disk.numbers, self.journal_disk.parked
        accepted, answers = self.on_record("query.received"), self.on_record("response.generation")
        answered = {numbers.get("answer to " + self.id_of(number)) for number in self.generated.done}
        unanswered = {numbers.get("answer to " + self.id_of(number)) for number in parked["generator"]}
        observed = set(self.observed.done)
        return {
            "what was accepted is on record": {numbers.get(query) for query in self.asked} == accepted,
            "every query is answered or parked": set(self.generated.done) | parked["generator"] == accepted,
            "every answer is on record": answered - unanswered <= answers <= answered,
            "what kills every process is parked": parked["generator"]
            >= {numbers[q] for q in self.asked if "poison" in q},
            "the observer sees every answer": observed | parked["observer"] == answers,
            "nothing has an effect twice": self.each_once(self.generated) and self.each_once(self.observed),
            "a session is in order": self.in_order(self.generated) and self.in_order(self.observed),
            "what was recorded is on record or reported as a gap": self.recorded_or_reported(),
        }

    def on_record(self, subject: str) -> set[int]:
        """The numbers of what was committed."""
        return {number for number, envelope in enumerate(self.journal_disk.envelopes, 1) if envelope.subject == subject}

    def id_of(self, number: int) -> str:
        """The envelope's id."""
        return self.journal_disk.envelopes[number - 1].id

    def each_once(self, effects: Effects) -> bool:
        """Whether no effect is there twice."""
        return max(Counter(effects.done).values(), default=1) == 1

    def in_order(self, effects: Effects) -> bool:
        """Whether the effects of each session came about in the order of their numbers."""
        last: Counter[str] = Counter()
        for number in effects.done:
            session = self.journal_disk.envelopes[number - 1].session_id or ""
            if number < last[session]:
                return False
            last[session] = number
        return True

    def recorded_or_reported(self) -> bool:
        """Of the process that lived to the end; what a dead one had not got through is lost, as recorded allows."""
        instance = self.world.living["api"][0].instance
        missing = [n for n in self.clients.transitions[instance] if f"{instance}.{n}" not in self.journal_disk.numbers]
        return len(missing) <= self.clients.gaps[instance]

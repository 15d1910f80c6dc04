"""One schedule: what is asked of the system, and whether anybody still waits for something."""

from __future__ import annotations

from simulated.consumer import Consumer, Memory, Observer
from simulated.conversation import Conversation
from simulated.frontend import Api, Clients
from simulated.generator import Generator
from simulated.journal import CONSUMERS, Journal, JournalDisk
from simulated.model import PLANS
from simulated.promises import Ends
from simulated.publisher import Publisher
from simulated.tool import Ledger, Tool
from simulated.world import Process, Violation, World


class Schedule:
    """A few sessions with a few queries each; any of the processes can be another one, to see what would break."""

    def __init__(
        self,
        seed: int,
        *,
        journal: type[Journal] = Journal,
        api: type[Api] = Api,
        generator: type[Generator] = Generator,
        tool: type[Tool] = Tool,
        observer: type[Observer] = Observer,
    ) -> None:
        self.journal, self.clients, self.conversation = JournalDisk(), Clients({}), Conversation()
        self.ledger, self.memory = Ledger(), Memory()
        disks = {"journal": self.journal, "api": self.clients, "generator": self.conversation}
        disks |= {"tool": self.ledger, "observer": self.memory}
        self.world = World(seed, journal, api, generator, tool, observer, disks=disks)
        for session in range(self.world.random.randint(1, 2)):
            queries = [self._query(f"{session}.{n}") for n in range(self.world.random.randint(1, 4))]
            self.clients.to_ask[str(session)] = queries
        self.asked = [query for queries in self.clients.to_ask.values() for query in queries]

    def run(self) -> None:
        """Raises `Violation` with the seed and the broken promises."""
        self.world.run(self.is_finished)
        broken = Ends(self).broken_promises()
        if broken:
            raise Violation(f"seed {self.world.seed}: {', '.join(broken)}")

    def is_finished(self) -> bool:
        """Whether nobody waits for anything any more."""
        clients = self.clients
        if any(clients.to_ask.values()) or len(clients.outcomes) < len(self.asked):
            return False
        living = self.world.living.values()
        return all(len(processes) == 1 for processes in living) and not any(self._is_busy(p) for (p,) in living)

    def _query(self, place: str) -> str:
        random = self.world.random
        kind = random.choice(list(PLANS))
        poison = f" poison{random.randint(0, len(PLANS[kind]))}" if random.random() < 0.05 else ""
        return f"{place} {kind}{poison}"

    def _is_busy(self, process: Process) -> bool:
        """Whether it still wants something, were it a journal's confirmation or a consumer's acknowledgement."""
        match process:
            case Journal():
                of_observer = self.journal.changes["observer"]
                has_dead = bool(of_observer.dead_letters or of_observer.again)
                return process.is_committing or has_dead or any(len(process.core.consumer(name)) for name in CONSUMERS)
            case Consumer():
                return any(process.holds[name].attempts for name in process.holds)  # type: ignore[attr-defined]
            case Publisher():
                return not process.journal.is_idle
        return False

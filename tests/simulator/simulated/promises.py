"""What must be true in the end of every schedule, whatever went wrong on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from simulated.journal import OUTCOMES
from simulated.model import answer_to, is_poison, plan_of

from local.bus.messages import ResponseGeneration
from local.journal.delivery import SUSPECT_AFTER

if TYPE_CHECKING:
    from simulated.schedule import Schedule

MAX_DELIVER = 3


class Ends:
    """How everything ended that a schedule's clients have asked; `responses` are by query."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule, self.world, self.clients = schedule, schedule.world, schedule.clients
        self.record = schedule.journal.envelopes
        self.accepted = [e for e in self.record if e.subject == "query.received"]  # in order of their numbers
        self.outcomes = [e for e in self.record if e.subject in OUTCOMES]
        self.responses = {
            e.correlation_id: ResponseGeneration.decode(e.payload)
            for e in self.outcomes
            if e.subject == ResponseGeneration.subject
        }
        self.answered = {query for query, response in self.responses.items() if response.status == "answered"}

    def statuses(self) -> list[str]:
        """How each query ended, in a word or a few."""
        failed = [e.payload.decode() for e in self.outcomes if e.correlation_id not in self.responses]
        return [*failed, *(response.status for response in self.responses.values())]

    def call_ends(self) -> list[str]:
        """How each tool call ended."""
        calls = (call for response in self.responses.values() for call in response.tool_calls)
        return [call.result or (call.error.kind if call.error else "") for call in calls]

    def broken_promises(self) -> list[str]:
        """Which ones were not kept, in words."""
        promises: dict[str, Callable[[], bool]] = {
            "what was accepted is on record": self.accepted_is_on_record,
            "every query has one outcome": self.one_outcome_each,
            "all copies of an outcome are equal": self.copies_are_equal,
            "a session is in order": self.sessions_are_in_order,
            "every call is answered": self.every_call_is_answered,
            "nothing has an effect twice": self.no_effect_twice,
            "an effect that is reported was done": self.reported_effects_were_done,
            "the observer has each answer once": self.observer_has_each_answer_once,
            "nothing is asked again that is on record": self.nothing_is_asked_again,
            "what was recorded is on record or reported as a gap": self.recorded_or_reported,
            "nothing is heard of what is not on record": self.nothing_is_too_early,
            "poison ends": self.poison_ends,
            "a suspect holds up its own session alone": lambda: not self.schedule.journal.held_up,
            "poison takes nobody with it": self.innocents_survive,
        }
        return [promise for promise, is_kept in promises.items() if not is_kept()]

    def accepted_is_on_record(self) -> bool:
        """What the frontend has accepted, and nothing else."""
        return {e.id for e in self.accepted} == self.clients.accepted

    def one_outcome_each(self) -> bool:
        """Answered, cancelled, or failed because it was given up."""
        return sorted(e.correlation_id for e in self.outcomes) == sorted(e.id for e in self.accepted)

    def copies_are_equal(self) -> bool:
        """Whoever heard how a query ended, live or from the record, heard the same."""
        return all(self.clients.outcomes[e.correlation_id] == {(e.subject, e.payload)} for e in self.outcomes)

    def sessions_are_in_order(self) -> bool:
        """The model was told of every earlier question that was answered, and of no other."""
        before: dict[str | None, list[str]] = {}
        for query in self.accepted:
            line = before.setdefault(query.session_id, [])
            if query.id in self.answered:
                if self.responses[query.id].answer != answer_to(query.id, line):
                    return False
                line.append(query.id)
        return True

    def every_call_is_answered(self) -> bool:
        """An answer rests on all the calls that its query asks for, in their order."""
        return all(
            [call.tool for call in self.responses[query].tool_calls] == [t for tools in plan_of(query) for t in tools]
            for query in self.answered
        )

    def no_effect_twice(self) -> bool:
        """Each call had its effect at most once."""
        return max(self.schedule.ledger.effects.values(), default=0) <= 1

    def reported_effects_were_done(self) -> bool:
        """What an answer says was done was done."""
        calls = (call for response in self.responses.values() for call in response.tool_calls)
        return all(self.schedule.ledger.effects[call.call_id] == 1 for call in calls if call.result == "done")

    def observer_has_each_answer_once(self) -> bool:
        """But for what processes died of again and again."""
        given_up = {e.correlation_id for e in self.schedule.journal.given_up("observer")}
        seen = Counter(self.schedule.memory.answers)
        return (
            max(seen.values(), default=1) == 1
            and self.responses.keys() - given_up <= seen.keys() <= self.responses.keys()
        )

    def nothing_is_asked_again(self) -> bool:
        """Neither the model nor a tool, for what is on record."""
        return not self.schedule.conversation.repeated

    def recorded_or_reported(self) -> bool:
        """Of the process that lived to the end; what a dead one had not got through is lost, as recorded allows."""
        instance = self.world.living["api"][0].instance
        sent = {f"{instance}.{seq}" for seq in self.clients.transitions[instance]}
        return len(sent - self.schedule.journal.numbers.keys()) <= self.clients.gaps[instance]

    def nothing_is_too_early(self) -> bool:
        """Whatever is computed ahead of the record."""
        return not self.clients.too_early

    def poison_ends(self) -> bool:
        """Not as answered, and after a bounded number of deaths: those beside another poison may be put down to that,
        and a journal that dies forgets which were not proven."""
        deaths = max(self.schedule.conversation.poisoned.values(), default=0)
        poisons = sum(map(is_poison, self.schedule.asked))
        bound = SUSPECT_AFTER * poisons + MAX_DELIVER * self.world.lives["journal"]
        return deaths <= bound and not any(is_poison(query) for query in self.answered)

    def innocents_survive(self) -> bool:
        """What is given up and no poison saw three processes die, beside nothing that was given up, and of something
        else: nobody can know of a poison that was cancelled."""
        given_up = [e.id for e in self.schedule.journal.given_up("generator")]
        poisoned = self.schedule.conversation.poisoned
        of_poison = sum(poisoned[query] for query in given_up)
        of_chance = self.world.lives["generator"] - 1 - of_poison + self.world.lives["journal"] - 1
        return MAX_DELIVER * sum(not is_poison(query) for query in given_up) <= of_chance

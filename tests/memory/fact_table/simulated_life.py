"""Dialogues of people whose lives are simulated: what is so of them is known at any time, whatever they talk about.

Made otherwise than the cases written by hand: sentences by chance from forms, many of them after each other in one
memory, with corrections, additions, things taken back, and exchanges that are deleted.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FORMS: dict[str, Any] = json.loads((Path(__file__).parents[2] / "data" / "fact_lives.json").read_text())
MESSAGES = 16


@dataclass(frozen=True)
class Message:
    """What the person says; `right` is what a model claims that is right, `wrong` what it claims when it errs. With
    `deletes` it is not said: the last message that set the home is deleted."""

    said: str = ""
    right: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    deletes: bool = False


@dataclass
class SimulatedLife:
    """One person; `facts` is what holds after the messages so far."""

    language: str
    seed: int
    homes: list[str] = field(default_factory=list)  # as they were stated, those since replaced included
    doubts: list[str] = field(default_factory=list)
    allergies: list[str] = field(default_factory=list)
    tongues: list[str] = field(default_factory=list)
    before: tuple[list[str], list[str]] | None = None  # the last move, if that can still be undone

    @property
    def facts(self) -> set[str]:
        """What holds now, as claims."""
        return {
            *(f"home={home}" for home in self.homes[-1:]),
            *(f"home~={home}" for home in self.doubts),
            *(f"allergies={each}" for each in self.allergies),
            *(f"languages={each}" for each in self.tongues),
        }

    def messages(self) -> Iterator[Message]:
        """What the person says, one after the other; the life changes with each."""
        chance = random.Random(f"{self.language} {self.seed}")
        forms = FORMS[self.language]
        acts = (
            self._move,
            self._move,
            self._fall_ill,
            self._recover,
            self._learn,
            self._leave,
            self._doubt,
            self._delete,
        )
        for number in range(MESSAGES):
            if number % 2:
                yield self._talk(chance, forms)
            else:
                message = chance.choice(acts)(chance, forms)
                yield message or self._talk(chance, forms)

    def _move(self, chance: random.Random, forms: Any) -> Message:
        city = chance.choice([city for city in forms["cities"] if city not in (*self.homes, *self.doubts)] or ["Ulm"])
        if city in self.homes:
            return self._talk(chance, forms)
        self.before = (self.homes, self.doubts)
        self.homes, self.doubts = [*self.homes, city], []
        return Message(chance.choice(forms["home"]).format(v=city), (f"home={city}",))

    def _leave(self, chance: random.Random, forms: Any) -> Message | None:
        if not self.homes or self.doubts:
            return None
        city = self.homes[-1]
        self.homes, self.before = [], None
        return Message(chance.choice(forms["no_home"]).format(v=city), (f"home-={city}",))

    def _doubt(self, chance: random.Random, forms: Any) -> Message | None:
        free = [city for city in forms["cities"] if city not in (*self.homes, *self.doubts)]
        if not free or self.doubts:
            return None
        city = chance.choice(free)
        self.doubts, self.before = [city], None
        return Message(chance.choice(forms["doubt"]).format(v=city), (f"home~={city}",), (f"home={city}",))

    def _delete(self, chance: random.Random, forms: Any) -> Message | None:
        if self.before is None:
            return None
        self.homes, self.doubts = self.before
        self.before = None
        return Message(deletes=True)

    def _fall_ill(self, chance: random.Random, forms: Any) -> Message | None:
        free = [each for each in forms["allergens"] if each not in self.allergies]
        if not free:
            return None
        what = chance.choice(free)
        self.allergies.append(what)
        return Message(chance.choice(forms["allergy"]).format(v=what), (f"allergies={what}",))

    def _recover(self, chance: random.Random, forms: Any) -> Message | None:
        if not self.allergies:
            return None
        what = self.allergies.pop(chance.randrange(len(self.allergies)))
        return Message(
            chance.choice(forms["no_allergy"]).format(v=what), (f"allergies-={what}",), (f"allergies={what}",)
        )

    def _learn(self, chance: random.Random, forms: Any) -> Message | None:
        free = [each for each in forms["tongues"] if each not in self.tongues]
        if not free:
            return None
        tongue = chance.choice(free)
        self.tongues.append(tongue)
        return Message(chance.choice(forms["tongue"]).format(v=tongue), (f"languages={tongue}",))

    def _talk(self, chance: random.Random, forms: Any) -> Message:
        """Something that says nothing of the person."""
        kind = chance.choice(["other", "other_allergy", "unreal", "unreal"])
        if kind == "other_allergy":
            what = chance.choice([each for each in forms["allergens"] if each not in self.allergies] or ["x"])
            return Message(chance.choice(forms[kind]).format(v=what), (), (f"allergies={what}",))
        city = chance.choice([city for city in forms["cities"] if city not in (*self.homes, *self.doubts)] or ["Ulm"])
        return Message(chance.choice(forms[kind]).format(v=city), (), (f"home={city}",))

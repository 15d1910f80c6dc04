"""One question put to a judge until its reply can be read: ask, hear, ask again or be done. Nothing here waits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from local.errors import IllegalTransition
from local.services.judging.prompt import Prompt, Reading

T = TypeVar("T")

TEMPERATURES = (0.0, 0.4, 0.8)  # one for each time of asking: the same question would get the same reply


class Status(StrEnum):
    """How judging ended."""

    GRADED = "graded"
    UNPARSED = "unparsed"  # no reply said in the agreed form what the judge decided; there is no score


@dataclass(frozen=True, slots=True)
class Ask:
    """What is to be sent to the judge now; `attempt` counts from 1."""

    prompt: Prompt
    temperature: float
    attempt: int


class Question(Generic[T]):
    """`ask` is what to send, None at the end; `hear` takes the reply. `reading` is None until one could be read."""

    def __init__(self, prompt: Prompt, read: Callable[[str], Reading[T] | None]) -> None:
        self._prompt = prompt
        self._read = read
        self.replies = 0
        self.last_reply = ""
        self.reading: Reading[T] | None = None

    @property
    def ask(self) -> Ask | None:
        """The question in the form it is to be asked next; None when it was answered, or asked often enough."""
        if self.reading is not None or self.replies == len(TEMPERATURES):
            return None
        return Ask(self._prompt, TEMPERATURES[self.replies], self.replies + 1)

    @property
    def unread(self) -> int:
        """How many of the replies could not be read."""
        return self.replies - (self.reading is not None)

    def hear(self, generated: str) -> None:
        """The judge's reply: the generated text alone, without the prompt. `IllegalTransition` if nothing was asked."""
        if self.ask is None:
            raise IllegalTransition("done", "hear")
        self.replies += 1
        self.last_reply = generated
        self.reading = self._read(generated)

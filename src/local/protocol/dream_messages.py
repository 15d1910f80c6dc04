"""Dreams: what is made of conversations while nobody asks anything."""

from __future__ import annotations

from typing import Literal

from local.protocol.message import Data, Delivery, Message
from local.protocol.messages import ErrorInfo

DREAM = "dream"  # the category of the notes
DreamVerb = Literal["status", "now", "on", "off"]


class DreamNote(Data):
    """One thing that was seen in conversations, and the engrams of the exchanges that it rests on. `engram_id` is what
    the memory will know it by."""

    engram_id: str
    text: str
    sources: tuple[str, ...]


class DreamMade(Message):
    """The dreamer, when it has looked back. The memory keeps what it has seen as notes. `read` counts the exchanges
    between the times `since` and `until` (seconds since 1970), `left_out` those with words of strangers, which it does
    not read. `proposes_soul` says that a change of the soul waits for its owner."""

    subject = "dream.made"
    delivery = Delivery.CONFIRMED
    hurried = False
    dream_id: str
    notes: tuple[DreamNote, ...]
    read: int
    left_out: int
    since: float
    until: float
    model: str
    prompt_tokens: int
    answer_tokens: int
    proposes_soul: bool = False


class DreamRequest(Message):
    """A door, for how the dreamer is (status), to have it dream without waiting for its time (now), or to switch it on
    or off while it runs; that outlives a restart."""

    subject = "dream.request."
    delivery = Delivery.EPHEMERAL
    family_key = "verb"
    is_request = True
    verb: DreamVerb


class DreamResult(Message):
    """The dreamer, to that. `why` says what it waits for; `dreamt_until` is the time of the last exchange that it has
    read, `tokens_today` what of `tokens_per_day` it has used."""

    subject = "dream.result."
    delivery = Delivery.EPHEMERAL
    family_key = "verb"
    verb: str
    is_on: bool = False
    why: str = ""
    dreamt_at: float | None = None
    dreamt_until: float | None = None
    tokens_today: int = 0
    tokens_per_day: int = 0
    error: ErrorInfo | None = None

"""Dreams: what is made of conversations while nobody asks anything."""

from __future__ import annotations

from local.protocol.message import Data, Delivery, Message

DREAM = "dream"  # the category of the notes


class DreamNote(Data):
    """One thing that was seen in conversations, and the engrams of the exchanges that it rests on. `engram_id` is what
    the memory will know it by."""

    engram_id: str
    text: str
    sources: tuple[str, ...]


class DreamMade(Message):
    """The dreamer, when it has looked back. The memory keeps what it has seen as notes. `read` counts the exchanges
    between the times `since` and `until` (seconds since 1970), `left_out` those with words of strangers, which it does
    not read. `proposes_soul` says that a change of the soul waits for its owner, `proposes_skill` of which skill one
    does."""

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
    proposes_soul: bool = False
    proposes_skill: str = ""

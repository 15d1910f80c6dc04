"""Which envelopes a tap shows: decided by their headers alone, payloads stay unparsed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from local.errors import LocalError
from local.protocol.envelope import Envelope
from local.protocol.subjects import PARTICIPANT_STATUS, covers, is_family

UPKEEP = (PARTICIPANT_STATUS, "journal.", "model.lease.")
_PATTERN = re.compile(r"[A-Za-z0-9_.*-]*")


class BadSubject(LocalError):
    """A subject to filter by that no message can have."""

    kind = "bad_subject"

    def __init__(self, pattern: str) -> None:
        example = "a subject (query.received), a family (tool.) or a pattern (tool.*.web_search)"
        super().__init__(f"--subject {pattern!r}: expected {example}")


@dataclass(frozen=True, slots=True)
class Selection:
    """What to show. `subjects` are whole subjects, families that end in a dot, or patterns in which `*` stands for any
    characters; without one, everything but what is said all the time to keep the system going: the status beats, and
    what the journal and the lines for the models have to say to those who use them.

    Raises `BadSubject`.
    """

    subjects: tuple[str, ...] = ()
    session_id: str | None = None
    query_id: str | None = None
    _wanted: re.Pattern[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for pattern in self.subjects:
            if not _PATTERN.fullmatch(pattern):
                raise BadSubject(pattern)
        wanted = "|".join(map(_as_regex, self.subjects)) or f"(?!{'|'.join(map(_as_regex, UPKEEP))}$).*"
        object.__setattr__(self, "_wanted", re.compile(wanted))

    def wants(self, envelope: Envelope) -> bool:
        """Whether to show this envelope. All that one query caused has its id as the correlation id. Of an id the
        beginning will do."""
        return (
            (self.session_id is None or (envelope.session_id or "").startswith(self.session_id))
            and (self.query_id is None or envelope.correlation_id.startswith(self.query_id))
            and self.wants_subject(envelope.subject)
        )

    def wants_subject(self, subject: str) -> bool:
        """Whether envelopes of this subject can be wanted at all."""
        return self._wanted.fullmatch(subject) is not None

    def subscriptions(self) -> list[str]:
        """The subjects and families to subscribe to, none of them twice or inside another."""
        needed = {_subscription(pattern) for pattern in self.subjects} or {""}
        return sorted(
            subject for subject in needed if not any(other != subject and covers(other, subject) for other in needed)
        )


def _as_regex(pattern: str) -> str:
    return re.escape(pattern).replace(r"\*", ".*") + (".*" if is_family(pattern) else "")


def _subscription(pattern: str) -> str:
    """The narrowest subject or family that holds everything a pattern matches."""
    literal, star, _ = pattern.partition("*")
    return literal[: literal.rfind(".") + 1] if star else pattern

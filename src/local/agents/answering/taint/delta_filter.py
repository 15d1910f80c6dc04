"""The links in one message of the model: in what it thinks and in what it says, each for itself."""

from __future__ import annotations

from collections.abc import Iterator

from local.agents.answering.taint.link_filter import LinkFilter
from local.agents.answering.taint.link_policy import LinkPolicy
from local.models.chat import ContentDelta, Degraded, Delta, Done, RestartDelta, ThinkingDelta

Said = ContentDelta | ThinkingDelta


class DeltaFilter:
    """Takes in the deltas of a message, and gives them on without the links that nobody has given."""

    def __init__(self, links: LinkPolicy) -> None:
        self._links = links
        self._begin()

    def _begin(self) -> None:
        self._filters: dict[type[Said], LinkFilter] = {
            kind: LinkFilter(self._links) for kind in (ThinkingDelta, ContentDelta)
        }
        self._kind: type[Said] | None = None
        self._is_interrupted: set[type[Said]] = set()

    def hear(self, delta: Delta) -> Iterator[Delta]:
        """What is to be heard instead."""
        if isinstance(delta, ContentDelta | ThinkingDelta):
            yield from self._say(delta)
            return
        if isinstance(delta, RestartDelta):
            self._begin()
        elif isinstance(delta, Done):
            yield from self._end()
        yield delta

    def _say(self, delta: Said) -> Iterator[Delta]:
        kind = type(delta)
        if self._kind is not None and kind is not self._kind:
            yield from self._pause(self._kind)
        self._kind = kind
        text = delta.text
        if kind in self._is_interrupted and text:
            self._is_interrupted.discard(kind)
            text = text if text[0].isspace() else f"\n{text}"  # so that the two pieces make no link
        if said := self._filters[kind].feed(text):
            yield kind(said)

    def _pause(self, kind: type[Said]) -> Iterator[Delta]:
        """The other kind goes on: nobody waits for the rest of this one."""
        if rest := self._filters[kind].close():
            yield kind(rest)
        self._is_interrupted.add(kind)

    def _end(self) -> Iterator[Delta]:
        for kind, links in self._filters.items():
            if rest := links.close():
                yield kind(rest)
        if number := self._filters[ContentDelta].left_out:
            what = "a link was left out of the answer" if number == 1 else f"{number} links were left out of the answer"
            yield Degraded(f"{what}: neither you nor a search or a page of this conversation gave it")

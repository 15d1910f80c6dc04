"""The journal's side of recorded messages: up to which number each stream has come in without a hole."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

MAX_STREAMS = 20_000
MAX_ABOVE = 20_000  # twice what a publisher keeps


@dataclass(slots=True)
class _Stream:
    contiguous: int = 0
    above: set[int] = field(default_factory=set)

    def close_up(self) -> int:
        while self.contiguous + 1 in self.above:
            self.contiguous += 1
            self.above.remove(self.contiguous)
        return self.contiguous


class CumulativeAcks:
    """Counts for each (instance, subject), from 1.

    Nothing of it has to be stored: a publisher whose messages stay unacknowledged says with its resends where its
    buffer begins, which mends what was forgotten here and steps over what was dropped there.
    """

    def __init__(self, max_streams: int = MAX_STREAMS) -> None:
        self._max = max_streams
        self._streams: OrderedDict[tuple[str, str], _Stream] = OrderedDict()

    def committed(self, instance: str, subject: str, seq: int) -> int:
        """A message is safe. Returns up to where everything is; a hole holds it back."""
        stream = self._stream(instance, subject)
        if seq > stream.contiguous:
            stream.above.add(seq)
        if len(stream.above) > MAX_ABOVE:  # its publisher has the message of the hole no more, if it ever resends any
            stream.contiguous = min(stream.above) - 1
        return stream.close_up()

    def begins_after(self, instance: str, subject: str, floor: int) -> int:
        """Nothing up to `floor` will come any more. Returns up to where everything else is safe."""
        stream = self._stream(instance, subject)
        if floor > stream.contiguous:
            stream.contiguous = floor
            stream.above = {seq for seq in stream.above if seq > floor}
        return stream.close_up()

    def _stream(self, instance: str, subject: str) -> _Stream:
        key = (instance, subject)
        stream = self._streams.get(key)
        if stream is None:
            if len(self._streams) >= self._max:
                self._streams.popitem(last=False)
            stream = self._streams[key] = _Stream()
        self._streams.move_to_end(key)
        return stream

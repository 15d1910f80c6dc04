"""The taint of one turn, looked up when it is first needed, which in most turns is never."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from local.bus.messages import ToolCallRecord
from local.core.attachments import AttachmentStore
from local.core.errors import AttachmentMissing
from local.generator.config import GeneratorConfig
from local.generator.history import EarlierRecord
from local.generator.links import DeltaFilter, LinkPolicy, loose_words_in
from local.generator.taint_policy import FETCH, SEARCH, LinkBudget, Provenance, TaintPolicy, calls_in, parsed
from local.generator.turn import Turn

MOST_SOURCES = 5


class TurnRecord(Protocol):
    """The stored provenance for one turn."""

    async def earlier(self) -> EarlierRecord:
        """Return the record of the earlier conversation."""

    async def before_task(self) -> EarlierRecord | None:
        """Return the record of the turn that wrote its task, if that was after untrusted content, else None."""

    async def budget(self) -> LinkBudget:
        """Return the link budget of its conversation."""

    async def keep(self, budget: LinkBudget) -> None:
        """Store the `unsaved` part of the budget."""


class NothingEarlier:
    """The record of a turn without an earlier conversation."""

    async def earlier(self) -> EarlierRecord:
        """Return an empty record."""
        return EarlierRecord()

    async def before_task(self) -> EarlierRecord | None:
        """Return None: there is no such task."""
        return None

    async def budget(self) -> LinkBudget:
        """A new one."""
        return LinkBudget()

    async def keep(self, budget: LinkBudget) -> None:
        """Do nothing: the budget is not read again."""


def _named(record: ToolCallRecord) -> list[str]:
    """Return the sources of the result of a call: hosts, the folder of files, else the tool."""
    if record.result is None or not (record.tainted or record.tool in (FETCH, SEARCH)):
        return []
    hosts = [url.netloc for source in record.sources if (url := parsed(source)) is not None]
    return hosts or [record.folder or record.tool]


@dataclass(slots=True)
class TurnTaint:
    """The taint of one turn. `record` returns the earlier conversation's; the turn's own steps are added each time."""

    turn: Turn
    settings: GeneratorConfig = field(default_factory=GeneratorConfig)
    record: TurnRecord = field(default_factory=NothingEarlier)
    files: AttachmentStore | None = None
    _before: tuple[EarlierRecord, list[ToolCallRecord], list[str]] | None = None
    _given: EarlierRecord | None = None
    _budget: LinkBudget | None = None

    async def policy(self) -> TaintPolicy:
        """Return the policy for the calls of the model's last message."""
        if self._budget is None:
            self._budget = await self.record.budget()
        task = self.turn.question.task
        question = self.turn.question.query_id if task is None else task.root_query_id
        public = self.turn.question.today
        return TaintPolicy(await self.provenance(), self._budget, question, self.settings.may_write, public)

    async def keep(self) -> None:
        """Store which links are opened. To be done before they are."""
        if self._budget is not None and self._budget.unsaved:
            await self.record.keep(self._budget)

    async def provenance(self) -> Provenance:
        """Return the provenance known so far."""
        if self._before is None:
            earlier, self._given = await self.record.earlier(), await self.record.before_task()
            named = earlier.attachments
            texts = await asyncio.to_thread(self._texts, named) if named else []
            self._before = earlier, calls_in(earlier.outcomes), texts
        earlier, calls, texts = self._before
        question, given = self.turn.question, self._given
        spoken = (*earlier.queries, *(given.queries if given is not None else ()), *question.spoken)
        others = (*earlier.others, *(() if question.own_words else (question.query,)))
        return Provenance.of(
            tuple(text for text in dict.fromkeys(spoken) if text not in others),
            (*question.private, *texts, *others),
            [*calls, *self.turn.records],
            self.settings.always_readable,
            None if given is None else calls_in(given.outcomes),
        )

    async def link_filter(self) -> DeltaFilter:
        """Return the filter for links of unknown provenance in the next message."""
        question = self.turn.question
        texts = [str(each.get("content") or "") for each in question.prelude if each.get("role") != "system"]
        results = [record.result for record in self.turn.records if record.result is not None]
        earlier = (each for exchange in self.turn.parts(()).exchanges for each in exchange.messages)
        results += [str(each.get("content") or "") for each in earlier if each.get("role") == "tool"]
        known = (*texts, question.query, *question.private, question.summary.story, *question.summary.facts, *results)
        return DeltaFilter(LinkPolicy(await self.provenance(), loose_words_in(known)))

    async def sources(self) -> tuple[str, ...]:
        """Return the sources of untrusted content in front of the model, the latest first, in names for a person:
        hosts, files, tools.
        """
        await self.provenance()
        assert self._before is not None, "that has looked"
        _, earlier, texts = self._before
        named = [name for record in reversed([*earlier, *self.turn.records]) for name in _named(record)]
        if texts or self.turn.question.attached.text:
            named.append("an attached file")
        return tuple(dict.fromkeys(named))[:MOST_SOURCES] or ("an earlier part of it",)

    def _texts(self, attachments: Sequence[str]) -> list[str]:
        """Return the texts of files of earlier questions, as far as they still exist."""
        found = []
        for attachment_id in attachments if self.files is not None else ():
            try:
                found.append(self.files.get(attachment_id).text)  # type: ignore[union-attr]
            except AttachmentMissing:
                continue
        return found

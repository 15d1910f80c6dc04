"""A query as it is shown where questions to a person come in between."""

from __future__ import annotations

from local.apps.console.approval_prompt import ApprovalPrompt
from local.apps.console.query_progress import ENDS, QueryProgress
from local.apps.console.renderer import Renderer
from local.apps.system_client import StreamEvent

ASKING = ("approval", "decision")


class ShownQuery:
    """Has a renderer tell what happens, and a prompt ask. What happens in the midst of a question is told when that is
    answered: lines that move would wipe it off the terminal."""

    def __init__(self, renderer: Renderer, progress: QueryProgress, approvals: ApprovalPrompt | None) -> None:
        """Without `approvals` nobody is asked."""
        self._renderer, self._progress, self._approvals = renderer, progress, approvals
        self._held: list[StreamEvent] = []

    def receive(self, event: StreamEvent) -> None:
        """Take an event."""
        self._held.append(event)
        if self._approvals is None or not self._approvals.is_open or event.name in ENDS:
            self._tell()
        if self._approvals is not None and event.name in ASKING:
            if not self._approvals.is_open:
                self._renderer.close()  # the lines that move
            self._approvals.receive(event.name, event.data)
            self._poll(self._approvals)

    def tick(self) -> None:
        """Time passes."""
        if self._approvals is not None and self._approvals.is_open:
            self._poll(self._approvals)
        else:
            self._renderer.tick(self._progress)

    def _poll(self, approvals: ApprovalPrompt) -> None:
        approvals.poll()
        if not approvals.is_open:
            self._tell()

    def _tell(self) -> None:
        held, self._held = self._held, []
        for event in held:
            if self._progress.receive(event):
                self._renderer.receive(event, self._progress)

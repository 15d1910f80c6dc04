"""What a participant is."""

from local.bus.envelope import Envelope
from local.bus.messages import AnswerDialog, QueryCancel, ToolRequest
from local.runtime.participant import Participant, Settingless, on


class Listener(Participant):
    """Hears answers."""

    name = "listener"

    @on(AnswerDialog)
    async def hear(self, message: AnswerDialog, envelope: Envelope) -> None: ...

    @on(ToolRequest, concurrency=3)
    async def serve(self, message: ToolRequest, envelope: Envelope) -> None: ...

    def not_a_handler(self) -> None: ...


class Child(Listener):
    """Hears cancellations, too."""

    @on(QueryCancel)
    async def stop(self, message: QueryCancel, envelope: Envelope) -> None: ...


def test_the_handlers_of_a_class_are_the_marked_methods_and_the_inherited_ones() -> None:
    found = {handles.method: (handles.message, handles.concurrency) for handles in Child.handlers()}
    assert found == {"hear": (AnswerDialog, 1), "serve": (ToolRequest, 3), "stop": (QueryCancel, 1)}
    assert {handles.method for handles in Listener.handlers()} == {"hear", "serve"}


def test_a_participant_subscribes_to_the_subject_of_a_message_or_its_whole_family() -> None:
    listener = Listener(Settingless())
    assert listener.subject_of(AnswerDialog) == "answer.dialog"
    assert listener.subject_of(ToolRequest) == "tool.request."

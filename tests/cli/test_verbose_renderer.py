"""`--verbose`: what is told beside the answer, and when."""

from __future__ import annotations

from typing import Any

from local.cli.client import StreamEvent
from local.cli.render import VerboseRenderer
from local.cli.renderer import PlainRenderer, QueryProgress

Event = tuple[str, dict[str, Any]]
CALL = {"call_id": "q:0:0", "tool": "dice", "args": {"sides": 6}}
RESULT = {**CALL, "result": "a\x1b[31m 3\nof 6", "sources": ["https://dice.example"], "duration_ms": 20.0}
STEP = {"model": "m", "prompt_tokens": 9, "completion_tokens": 2, "started": 1.0, "first_token": 1.5, "ended": 3.0}
USAGE = {"steps": [STEP], "context": {"parts": {"system": 7, "summary": 0}}}
FINISH = {"from": "GENERATING", "to": "PUBLISHING", "action": "FINISH", "then": [{"to": "IDLE", "action": "PUBLISHED"}]}


def told(*events: Event) -> list[str]:
    """What was written, in its order: the answer among what is said of it."""
    lines: list[str] = []
    renderer = VerboseRenderer(PlainRenderer(lines.append, lines.append), lambda line: lines.append(f"- {line}"))
    progress = QueryProgress()
    for name, data in events:
        event = StreamEvent(name, data, "")
        if progress.receive(event):
            renderer.receive(event, progress)
    renderer.close()
    return lines


def test_all_that_leads_to_an_answer_is_told_on_lines_that_control_no_terminal() -> None:
    assert told(
        ("accepted", {"query_id": "q", "session_id": "s", "attempt": 1}),
        ("thinking", {"text": "A dice"}), ("thinking", {"text": "\nis asked for."}),
        ("tool_call", CALL), ("tool_result", RESULT),
        ("response", {"answer": "Three.", "status": "answered", "usage": USAGE}),
    ) == [
        "- query q in conversation s, attempt 1",
        "- thinks:", "-   A dice", "-   is asked for.",
        '- calls dice {"sides": 6}',
        "dice “6”  0.02 s  1 source\n",
        "- gave:", "-   a\\x1b[31m 3", "-   of 6", "-   source: https://dice.example",
        "Three.\n",
        "- asked m: 9 → 2 tokens, 2.00 s, first word after 0.50 s",
        "- in the window: system 7",
    ]  # fmt: skip


def test_what_happens_in_the_midst_of_a_text_is_told_after_it() -> None:
    response = {"answer": "Hello.", "status": "answered"}
    assert told(("token", {"text": "Hel"}), ("state", FINISH), ("token", {"text": "lo."}), ("response", response)) == [
        "Hello.\n", "- GENERATING → PUBLISHING (FINISH) → IDLE (PUBLISHED)",
    ]  # fmt: skip


def test_what_an_interrupted_query_held_back_is_told_at_the_end() -> None:
    assert told(("token", {"text": "Hel"}), ("state", FINISH))[-1].startswith("- GENERATING")

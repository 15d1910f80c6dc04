"""What was accepted is answered, once, whichever process is killed; what was deleted is gone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, as_completed

import httpx

from local.cli.command_table import run_command

SSE = {"accept": "text/event-stream"}
SECONDS = 90.0


def test_a_journal_killed_under_load_loses_nothing_and_holds_up_nobody_for_long(live) -> None:
    numbers = range(60)
    with ThreadPoolExecutor(8) as pool:
        asked = [
            pool.submit(live.ask, f"What is {n} + {n}?", query_id=f"load-{n}", session_id=f"load-{n % 5}")
            for n in numbers
        ]
        next(as_completed(asked))
        live.kill("journal")
        answers = [asking.result()["answer"] for asking in asked]
    assert all(str(n + n) in answer for n, answer in zip(numbers, answers, strict=True))
    for subject in ("query.received", "response.generation"):
        live.wait_until(lambda subject=subject: {live.on_record(subject, f"load-{n}") for n in numbers} == {1})


def test_a_stream_goes_on_at_the_next_api_from_the_last_event_id(live) -> None:
    body = {"query": "What is the capital of Japan?", "query_id": "streamed"}
    live.model_fails(body["query"], "first_token_delay", seconds=300, times=99)
    with httpx.stream("POST", f"{live.system.api_url}/query", json=body, headers=SSE, timeout=SECONDS) as response:
        seen = next(line.removeprefix("id:").strip() for line in response.iter_lines() if line.startswith("id:"))
        live.wait_until(lambda: live.model_is_asked(body["query"]))
        live.stand_in("DELETE", "fault")
        live.kill("api")
    live.kill("generator")  # whose next process asks the model anew, which is not slow any more
    url = f"{live.system.api_url}/query/streamed/events"
    with httpx.stream("GET", url, headers={"last-event-id": seen}, timeout=SECONDS) as response:
        events = [line.removeprefix("event:").strip() for line in response.iter_lines() if line.startswith("event:")]
    assert (events[0], events[-1]) == ("snapshot", "response")
    assert "Tokyo" in live.ask(body["query"], query_id="streamed")["answer"]
    live.wait_until(lambda: live.on_record("response.generation", "streamed") == 1)


def test_a_deleted_session_is_in_no_file_and_the_journal_says_that_it_was_removed(live, files_with, capfd) -> None:
    data_dir = live.system.data_dir
    answer = live.ask("My cat is called Mau-Mau-the-Third.", session_id="gone")
    assert files_with(data_dir, "Mau-Mau-the-Third")
    deleted = live.http.delete("/sessions/gone")
    assert (deleted.status_code, deleted.json()["deleted_turns"]) == (200, 1)
    assert live.http.get(f"/query/{answer['query_id']}").status_code == 410
    capfd.readouterr()
    assert run_command(["journal", "show", "gone", "--data-dir", str(data_dir)]) == 0
    shown = capfd.readouterr().out
    assert "(removed)" in shown and "Mau" not in shown
    assert files_with(data_dir, "Mau-Mau-the-Third") == []

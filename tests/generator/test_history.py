"""What was asked and answered."""

import asyncio
import errno
import json
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from local.bus.messages import ContextItem
from local.core.database import OwnedDatabase, migrate
from local.core.errors import StoreFailed
from local.generator.builtin_tools import TodoRecord
from local.generator.context import Exchange
from local.generator.history import (
    END,
    FEW_TURNS,
    MIGRATIONS,
    ConversationService,
    EarlierRecord,
    NewTurn,
    PriorContext,
    Refusal,
    TaintRecord,
    TurnStatus,
    delete_turns,
    past_of,
)
from local.generator.sessions import BranchPoint, NewBranch, SessionFilter, SessionRecord


@pytest.fixture
async def conversation(tmp_path: Path) -> AsyncIterator[ConversationService]:
    async with ConversationService(tmp_path / "c.db") as service:
        yield service


def asked(query_id: str, session_id: str = "s", query: str = "", *, in_history: bool = True) -> NewTurn:
    return NewTurn(
        query_id, session_id, "user", f"envelope of {query_id}", query or f"query {query_id}", "{}", in_history
    )


async def listed(service: ConversationService, wanted: SessionFilter | None = None) -> list[dict[str, Any]]:
    sessions, _ = await SessionRecord(service, "A").listing(wanted or SessionFilter())
    return sessions


async def end(service: ConversationService, query_id: str, answer: str | None, status: str = "answered") -> None:
    await service.finish(query_id, TurnStatus(status), answer, "response.generation", "{}")


async def contents(service: ConversationService, session_id: str = "s", before: int | None = None) -> list[str]:
    return [message["content"] for message in await service.history(session_id, before)]


async def test_a_query_is_stored_once(conversation: ConversationService) -> None:
    first, is_new = await conversation.accept(NewTurn("q1", "s", "user", "e1", "Well?", "{}", tools=("dice", "web")))
    again, is_new_again = await conversation.accept(NewTurn("q1", "other", None, "e2", "Other?", "{}"))
    assert (is_new, is_new_again) == (True, False)
    assert again == first
    assert (first.query, first.session_id, first.attempt, first.tools) == ("Well?", "s", 1, ("dice", "web"))
    assert (first.status, first.outcome, first.published, first.in_history) == ("open", None, False, True)


async def test_copies_that_arrive_together_are_one_turn(conversation: ConversationService) -> None:
    results = await asyncio.gather(*(conversation.accept(asked("q1")) for _ in range(20)))
    assert [is_new for _, is_new in results] == [True] + [False] * 19


async def test_the_history_is_what_was_said_in_the_order_of_asking(conversation: ConversationService) -> None:
    for number in (1, 2, 3):
        await conversation.accept(asked(f"q{number}"))
    for number in (3, 1, 2):
        await end(conversation, f"q{number}", f"answer {number}")
    assert await contents(conversation) == ["query q1", "answer 1", "query q2", "answer 2", "query q3", "answer 3"]


async def test_only_what_was_said_counts_as_history(conversation: ConversationService) -> None:
    for query_id in ("open", "failed", "cancelled in line", "cancelled early", "cancelled late", "foreign"):
        await conversation.accept(asked(query_id, in_history=query_id != "foreign"))
    await end(conversation, "failed", "so f", "failed")
    await end(conversation, "cancelled in line", None, "cancelled")
    await end(conversation, "cancelled early", "", "cancelled")
    await end(conversation, "cancelled late", "so far", "cancelled")
    await end(conversation, "foreign", "elsewhere")
    assert await contents(conversation) == ["query cancelled late", "so far"]


async def test_the_steps_of_an_open_turn_are_kept_in_order_and_dropped_at_its_end(
    conversation: ConversationService,
) -> None:
    await conversation.accept(asked("q1"))
    await conversation.add_steps("q1", 0, ["one", "two"])
    await conversation.add_steps("q1", 2, ["three"])
    await conversation.add_steps("q1", 2, ["three"])
    assert await conversation.steps("q1") == ["one", "two", "three"]
    await end(conversation, "q1", "answer")
    assert await conversation.steps("q1") == []


async def test_a_turn_ends_once(conversation: ConversationService) -> None:
    await conversation.accept(asked("q1"))
    await end(conversation, "q1", "answer")
    await end(conversation, "q1", None, "cancelled")
    turn = await conversation.turn("q1")
    assert turn is not None
    assert (turn.status, turn.answer) == (TurnStatus.ANSWERED, "answer")
    assert turn.finished_at is not None


async def test_unfinished_is_what_is_open_or_not_published_oldest_first(conversation: ConversationService) -> None:
    for query_id in ("out", "stored", "open"):
        await conversation.accept(asked(query_id))
    for query_id in ("stored", "out"):
        await end(conversation, query_id, "answer")
    await conversation.published("out")
    assert [turn.query_id for turn in await conversation.unfinished()] == ["stored", "open"]


async def test_respondents_on_one_file_do_not_see_each_other(tmp_path: Path) -> None:
    async with (
        ConversationService(tmp_path / "c.db", "A") as first,
        ConversationService(tmp_path / "c.db", "B") as second,
    ):
        assert (await first.accept(asked("q1")))[1]
        assert (await second.accept(asked("q1")))[1]
        await first.add_steps("q1", 0, ["a"])
        await end(first, "q1", "answer of A")
        turn = await second.turn("q1")
        assert turn is not None
        assert (turn.status, await contents(second)) == ("open", [])


async def test_a_new_turn_brings_its_history_along_unless_an_earlier_one_may_still_add_to_it(
    conversation: ConversationService,
) -> None:
    first, _ = await conversation.accept(asked("q1", query="one"))
    second, _ = await conversation.accept(asked("q2", query="two"))
    assert (first.beginning, second.beginning) == (PriorContext(None, ()), None)
    for query_id in ("q1", "q2"):
        await conversation.finish(query_id, TurnStatus.ANSWERED, "yes", "s", "{}")
    third, _ = await conversation.accept(asked("q3", query="three"))
    assert third.beginning is not None
    assert [message["content"] for message in third.beginning.history] == ["one", "yes", "two", "yes"]


async def test_single_results_are_kept_until_the_step_that_tells_of_all_of_them_is_stored(tmp_path: Path) -> None:
    async with ConversationService(tmp_path / "c.db") as killed:
        await killed.accept(asked("q1"))
        await killed.keep_result("q1", "q1:0:1", "second")
        await killed.keep_result("q1", "q1:0:0", "first")
        await killed.keep_result("q1", "q1:0:0", "first again")
        async with ConversationService(tmp_path / "c.db") as service:
            assert await service.results("q1") == ["first", "second"]
            assert await service.results("q2") == []
            await service.add_steps("q1", 1, ["both"])
            assert await service.results("q1") == []


async def test_a_turn_begins_with_the_summary_and_what_is_not_in_it(conversation: ConversationService) -> None:
    for number in range(60):
        await conversation.accept(asked(f"q{number}", query=f"query {number}"))
        await conversation.finish(f"q{number}", TurnStatus.ANSWERED, "yes", "s", "{}")
    await conversation.keep_summary("s", 58, "much was said")
    await conversation.keep_summary("s", 3, "older")
    turn, _ = await conversation.accept(asked("now"))
    past, _ = await conversation.beginning(turn)
    assert turn.beginning == past
    assert past.summary == "much was said"
    assert [message["content"] for message in past.history] == ["query 58", "yes", "query 59", "yes"]


async def test_a_deleted_session_has_no_summary_and_gets_none_afterwards(conversation: ConversationService) -> None:
    await conversation.accept(asked("q1"))
    await conversation.finish("q1", TurnStatus.ANSWERED, "yes", "s", "{}")
    await conversation.keep_summary("s", 1, "secret")
    await conversation.delete_session("s")
    await conversation.keep_summary("s", 1, "secret")
    turn, _ = await conversation.accept(asked("q2"))
    assert turn.beginning == PriorContext(None, ())


async def test_a_record_that_cannot_be_taken_over_is_left_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(self: OwnedDatabase, connection: object) -> None:
        raise OSError(errno.EIO, "input/output error")

    monkeypatch.setattr(OwnedDatabase, "_wipe_log", fails)
    before = set(threading.enumerate())
    with pytest.raises(StoreFailed, match="input/output error"):
        async with ConversationService(tmp_path / "c.db"):
            pass
    assert not {thread.name for thread in set(threading.enumerate()) - before if "c.db" in thread.name}


def recalling(engram_id: str, text: str) -> dict[str, object]:
    return {"tool": "search_memory", "result": text, "sources": [f"engram:{engram_id}", "engram:other"]}


def contents_of(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


async def test_a_forgotten_query_has_left_nothing_and_the_rest_of_its_session_is_there(tmp_path: Path) -> None:
    async with ConversationService(tmp_path / "c.db") as service:
        for number in (1, 2, 3):
            await service.accept(asked(f"q{number}", query=f"secret {number}"))
            await end(service, f"q{number}", f"noted {number}")
        await service.keep_summary("s", 2, "the secret 2 was told")
        await service.accept(asked("q0", query="And?"))
        fact = ContextItem(kind="earlier", key="f", text="the secret 2")
        sent = Exchange(0, ({"role": "user", "content": "And?"},), (fact,)).as_json()
        await service.finish("q0", TurnStatus.ANSWERED, "Yes.", "response.generation", "{}", sent=sent)
        assert await service.forget("q2") == 1
        assert b"secret 2" not in contents_of(tmp_path)
        assert await contents(service) == ["secret 1", "noted 1", "secret 3", "noted 3", "And?", "Yes."]
        turn, _ = await service.accept(asked("q4"))
        assert turn.beginning is not None
        assert (turn.beginning.summary, len(turn.beginning.history)) == (None, 6)
        assert turn.beginning.sent == (None, None, None)  # with facts of the summary that is gone
        assert list(turn.beginning.ended) == sorted(time for time in turn.beginning.ended if time)
        assert await service.forget("q2") == 0


async def test_what_other_turns_have_recalled_of_a_deleted_memory_loses_its_text_wherever_it_is_kept(
    tmp_path: Path,
) -> None:
    async with ConversationService(tmp_path / "c.db") as service:
        for query_id in ("ended", "open"):
            await service.accept(asked(query_id))
        outcome = {"answer": "It is so.", "tool_calls": [recalling("e1", "secret"), recalling("e2", "kept")]}
        await service.finish("ended", TurnStatus.ANSWERED, "It is so.", "response.generation", json.dumps(outcome))
        await service.add_steps("open", 0, [json.dumps({"kind": "tools", "records": [recalling("e1", "secret")]})])
        await service.keep_result("open", "open:1:0", json.dumps(recalling("e1", "secret")))
        assert await service.is_recalled_by_open_turn("e1")
        assert not await service.is_recalled_by_open_turn("e2")
        assert await service.forget_recalled("e1") == 3
        assert b"secret" not in contents_of(tmp_path)
        ended = await service.turn("ended")
        assert ended is not None
        calls = json.loads(ended.outcome or "")["tool_calls"]
        assert [call["result"] for call in calls] == ["[a memory that was deleted]", "kept"]
        assert [call["sources"] for call in calls] == [["engram:other"], ["engram:e2", "engram:other"]]
        assert not await service.is_recalled_by_open_turn("e1")
        assert await service.forget_recalled("e1") == 0


async def test_a_file_that_two_users_name_goes_for_each_with_their_own_last_query(
    conversation: ConversationService,
) -> None:
    for user_id in ("ann", "bob"):
        await conversation.accept(NewTurn(user_id, user_id, user_id, "e", "?", json.dumps({"attachments": ["one"]})))
    assert await conversation.attachments_of(session_id="ann") == {("one", "ann", False)}


async def test_the_sessions_of_one_user_are_listed_and_what_has_no_user_is_the_owner_s(
    conversation: ConversationService,
) -> None:
    for session, user_id in (("a", "ann"), ("b", "bob"), ("o", None), ("p", "owner")):
        await conversation.accept(NewTurn(session, session, user_id, "e", "?", "{}"))

    async def of(user_id: str) -> set[str]:
        return {row["session_id"] for row in await listed(conversation, SessionFilter(user_id, "owner"))}

    assert (await of("ann"), await of("owner"), await of("eve")) == ({"a"}, {"o", "p"}, set())
    assert len(await of("")) == 4


async def test_the_first_query_decides_whether_its_session_is_incognito(conversation: ConversationService) -> None:
    for query_id, session, incognito in (("q1", "s", True), ("q2", "s", False), ("q3", "t", False), ("q4", "t", True)):
        turn, _ = await conversation.accept(NewTurn(query_id, session, None, "e", "?", "{}", incognito=incognito))
        assert turn.refused is (None if incognito is (session == "s") else Refusal.INCOGNITO)
    flags = {session["session_id"]: session["incognito"] for session in await listed(conversation)}
    assert flags == {"s": True, "t": False}
    assert await conversation.incognito_sessions() == ["s"]
    assert await conversation.refused_incognito() == ["q4"]


async def test_a_session_is_idle_from_its_last_answer_on(conversation: ConversationService) -> None:
    await conversation.accept(NewTurn("q1", "s", None, "e", "?", "{}", incognito=True))
    await end(conversation, "q1", "answer")
    [turn] = await conversation.session("s")
    assert turn.finished_at is not None
    assert await conversation.incognito_sessions(turn.finished_at) == []
    assert await conversation.incognito_sessions(turn.finished_at + 0.001) == ["s"]


async def test_a_session_that_is_dropped_is_gone_with_what_is_open_in_it(tmp_path: Path) -> None:
    async with ConversationService(tmp_path / "c.db") as service:
        await service.accept(asked("q1", query="secret 1"))
        await service.add_steps("q1", 0, ["secret 2"])
        await service.keep_result("q1", "q1:1:0", "secret 3")
        await service.cancel("q1")
        assert await service.drop_session("s") == 1
        assert await service.session("s") == []
        assert b"secret" not in contents_of(tmp_path)


async def test_a_session_is_of_the_user_who_began_it_and_what_it_refused_has_nothing_to_do_with_it(
    conversation: ConversationService,
) -> None:
    for query_id, user, refused in (
        ("q1", "ann", None),
        ("q2", "ben", Refusal.USER),
        ("q3", None, Refusal.USER),
        ("q4", "ann", None),
    ):
        for is_new in (True, False):
            turn, was_new = await conversation.accept(NewTurn(query_id, "s", user, "e", "?", "{}"))
            assert (turn.refused, was_new) == (refused, is_new)
        await end(conversation, query_id, "answer")
    for query_id in ("q1", "q4"):
        await conversation.forget(query_id)
    turn, _ = await conversation.accept(NewTurn("q5", "s", "ann", "e", "?", "{}"))
    assert turn.refused is None  # who was refused does not own what is left
    await conversation.delete_session("s")
    assert await conversation.turn("q2") is None


# How the model was sent an exchange is stored with its turn, and goes when something in it is deleted.

SENT = '{"said": [], "messages": [], "sources": ["engram:%s"]}'


async def ended_with(service: ConversationService, query_id: str, **also: Any) -> None:
    await service.accept(asked(query_id))
    await service.finish(query_id, TurnStatus.ANSWERED, "Yes.", "response.generation", "{}", **also)


def sent(service: ConversationService, session: str = "s") -> tuple[str | None, ...]:
    past = service.foresee(asked("next", session))
    assert past is not None
    return past.sent


async def test_what_was_sent_is_before_later_turns_and_in_branches(conversation: ConversationService) -> None:
    await ended_with(conversation, "q1", sent=SENT % "a")
    await ended_with(conversation, "q2")  # as of turns from before it was stored
    assert sent(conversation) == (SENT % "a", None)
    await SessionRecord(conversation, "A").branch(NewBranch("b", BranchPoint("s", "q2", "user", False), 1.0))
    assert sent(conversation, "b") == (SENT % "a",)


async def test_what_was_sent_goes_with_an_engram_that_it_tells_of_and_the_exchange_stays(
    conversation: ConversationService,
) -> None:
    for query_id, engram in (("q1", "a"), ("q2", "b"), ("q3", "?")):  # of the last nobody knows the engram
        await ended_with(conversation, query_id, sent=SENT % engram)
    assert await conversation.forget_recalled("a") == 2
    assert sent(conversation) == (None, SENT % "b", None)
    assert len(await conversation.history("s")) == 6


# What the record says of taint.

ANSWERED = {
    "nothing called": ({}, {"answer": "Yes."}, False),
    "no calls": ({}, {"answer": "Yes.", "tool_calls": []}, False),
    "a page read": ({}, {"answer": "Yes.", "tool_calls": [{"tool": "web_fetch"}]}, True),
    "any other tool called": ({}, {"answer": "Yes.", "tool_calls": [{"tool": "dice"}]}, True),
    "a file attached": ({"attachments": ["f1"]}, {"answer": "Yes."}, True),
    "no files attached": ({"attachments": []}, {"answer": "Yes."}, False),
    "cannot be read": ("{", "{", False),
    "no end yet": ({}, None, False),
}


def written(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else json.dumps(value)


async def test_sessions_from_before_have_the_taint_that_their_calls_and_files_tell_of(tmp_path: Path) -> None:
    path = tmp_path / "conversation.db"
    with closing(sqlite3.connect(path)) as db, db:
        migrate(db, MIGRATIONS[: next(number for number, script in enumerate(MIGRATIONS) if "taints" in script)])
        for session, (body, outcome, _) in ANSWERED.items():
            db.execute(
                "INSERT INTO turns (query_id, respondent_id, session_id, envelope_id, query, body, in_history, status,"
                " tools, answer, outcome_subject, outcome, published, created_at) VALUES"
                " (?, 'A', ?, 'e', 'Yes?', ?, 1, 'answered', '[]', 'Yes.', 'response.generation', ?, 1, 1.0)",
                (session, session, written(body), written(outcome)),
            )
    async with ConversationService(path, "A") as service:
        found = {
            session: await service.write(lambda db, key=session: past_of(db, "A", key, END).tainted)
            for session in ANSWERED
        }
        own = await TaintRecord(service, "A").is_history_tainted([{"role": "assistant", "content": "Yes."}])
    assert found == {session: tainted for session, (_, _, tainted) in ANSWERED.items()}
    assert own  # by their text they are not known: to a client's history they are answers of nobody's


async def test_in_a_history_that_a_client_keeps_what_neither_we_nor_the_user_have_said_taints(
    conversation: ConversationService,
) -> None:
    record = TaintRecord(conversation, "A")
    for role, content, taints in (
        ("assistant", "I never said that.", True),
        ("tool", "A page.", True),
        ("function", "A page.", True),
        ("system", "You are a pirate.", True),
        ("developer", "You are a pirate.", True),
        ("user", "Context:\nShips sail.", True),
        ("user", "I like ships.", False),
        ("assistant", " \n", False),  # nothing was said
    ):
        history = [{"role": "user", "content": "Hi"}, {"role": role, "content": content}]
        assert await record.is_history_tainted(history) is taints, role


@pytest.mark.parametrize("turns", [0, FEW_TURNS, FEW_TURNS + 1])
async def test_what_the_turns_of_a_session_say_is_found_however_many_there_are(
    conversation: ConversationService, monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    for number in range(turns):
        body = json.dumps({"attachments": [f"f{number}"]})
        await conversation.accept(NewTurn(f"q{number}", "s", None, "e", f"question {number}", body))
        await conversation.finish(f"q{number}", TurnStatus.ANSWERED, "Yes.", "response.generation", f'"{number}"')
    if turns <= FEW_TURNS:  # which are read without waiting for what is being written
        monkeypatch.setattr(ConversationService, "write", None)
    assert await TaintRecord(conversation, "A").turns_of("s") == EarlierRecord(
        queries=tuple(f"question {number}" for number in range(turns)),
        outcomes=tuple(f'"{number}"' for number in range(turns)),
        attachments=tuple(f"f{number}" for number in range(turns)),
    )


async def test_the_list_of_a_session_is_that_of_the_call_that_has_set_it_last(
    conversation: ConversationService, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = ({"tool": "todo", "args": {"n": n}, "result": "set"} for n in (1, 2))
    dice = {"tool": "dice", "args": {}, "result": "6"}
    for query_id, session, calls in (("q1", "s", (first, second)), ("q2", "s", (dice,)), ("q3", "t", (dice,))):
        await conversation.accept(asked(query_id, session))
        outcome = json.dumps({"tool_calls": calls}, separators=(",", ":"))
        await conversation.finish(query_id, TurnStatus.ANSWERED, "Well.", "response.generation", outcome)
    assert await TodoRecord(conversation, "A").latest("s") == [second]
    monkeypatch.setattr(asyncio, "to_thread", None)  # where there is none, nobody waits
    assert await TodoRecord(conversation, "A").latest("t") == []


async def test_what_was_opened_counts_in_a_conversation_its_branches_and_the_process_after_this_one(
    conversation: ConversationService,
) -> None:
    async def opened(session: str) -> list[set[str]]:
        budget = await TaintRecord(conversation, "A").budget(session, None)  # of a process that begins
        return sorted(budget.opened.values(), key=sorted)

    first, second = asked("q1", session_id="s"), asked("q2", session_id="s")
    for turn in (first, second):
        await conversation.accept(turn)
        await end(conversation, turn.query_id, "Yes.")
    record = TaintRecord(conversation, "A")
    budget = await record.budget("s", None)
    assert await record.budget("s", None) is budget  # all agents of a question share it
    for question, address in (("q1", "http://a.example/"), ("q2", "http://b.example/"), ("gone", "http://c.example/")):
        assert budget.refusal(question, address) == ""
        await record.keep(budget, "s")
    assert await opened("s") == [{"http://a.example/"}, {"http://b.example/"}]
    point = BranchPoint("s", "q2", "user", False)
    await SessionRecord(conversation, "A").branch(NewBranch("copy", point, 1.0))
    assert await opened("copy") == [{"http://a.example/"}]
    await conversation.write(lambda db: delete_turns(db, "A", "session_id", "s"))
    assert (await opened("s"), await opened("copy")) == ([], [{"http://a.example/"}])

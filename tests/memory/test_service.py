"""Exchanges are stored once, found by words and by meaning, by their own user alone, and annotated."""

import asyncio
import re
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, get_args

import pytest

from local.core.errors import AlreadyRunning, ModelError, NotOnRecord
from local.memory.messages import OnlySome
from local.memory.service import EngramService
from local.memory.store import AnswerRating, Change, EngramDraft, Ingested, Origin
from local.memory.vectors import NOT_READY

Make = Callable[..., EngramDraft]
Opened = Callable[..., Any]


async def found(service: EngramService, question: str, user_id: str = "ann", **options: Any) -> list[str]:
    return [hit.engram.query for hit in (await service.search(user_id, question, **options)).hits]


async def test_words_are_found_at_once_and_stemmed(service: EngramService, exchange: Make, embedder: Any) -> None:
    embedder.may_go_on.clear()
    await service.ingest(exchange("I was hiking in the mountains"))
    result = await service.search("ann", "Which mountain did I hike?")
    assert [hit.engram.query for hit in result.hits] == ["I was hiking in the mountains"]
    assert result.degraded == (NOT_READY,)
    embedder.may_go_on.set()


async def test_meanings_are_found_without_a_common_word(service: EngramService, exchange: Make) -> None:
    await service.ingest(exchange("My coffee is black"))
    await service.ingest(exchange("The train is late"))
    await service.settled()
    result = await service.search("ann", "espresso")
    assert [hit.engram.query for hit in result.hits] == ["My coffee is black"]
    assert (result.degraded, result.hits[0].words, result.hits[0].cosine) == ((), 0.0, pytest.approx(0.6, abs=0.2))


async def test_an_exchange_is_found_by_what_was_said_before_it(service: EngramService, exchange: Make) -> None:
    await service.ingest(exchange("I am planning a journey to Lisbon", session_id="s"))
    await service.ingest(exchange("We stay at the Bellevue", session_id="s"))
    await service.ingest(exchange("We stay at the Excelsior", session_id="elsewhere"))
    await service.settled()
    hits = await found(service, "Where do we stay in Lisbon?")
    assert hits.index("We stay at the Bellevue") < hits.index("We stay at the Excelsior")


async def test_an_exchange_is_found_by_the_meaning_of_the_answer_before_it(
    service: EngramService, exchange: Make
) -> None:
    await service.ingest(exchange("What shall we bring?", session_id="s", answer="Some coffee would please them"))
    await service.ingest(exchange("Good, what about Saturday?", session_id="s"))
    await service.ingest(exchange("Good, what about Sunday?", session_id="elsewhere"))
    await service.settled()
    hits = await found(service, "espresso")
    assert "Good, what about Saturday?" in hits and "Good, what about Sunday?" not in hits


async def test_users_find_only_their_own(service: EngramService, exchange: Make) -> None:
    await service.ingest(exchange("Ann likes coffee"))
    bobs = exchange("Bob likes coffee", user_id="bob")
    await service.ingest(bobs)
    await service.settled()
    assert await found(service, "Who likes coffee?") == ["Ann likes coffee"]
    assert await found(service, "Who likes coffee?", "bob") == ["Bob likes coffee"]
    assert await found(service, "Who likes coffee?", "eve") == []
    assert [engram.user_id for engram in await service.recent("bob")] == ["bob"]
    for refused in (service.get, service.delete, service.pin, service.changes):
        with pytest.raises(NotOnRecord, match=f"there is no engram {bobs.engram_id}"):
            await refused("ann", bobs.engram_id)


async def test_the_session_that_asks_can_be_left_out(service: EngramService, exchange: Make) -> None:
    await service.ingest(exchange("I like coffee", session_id="this"))
    await service.ingest(exchange("I like strong coffee", session_id="that"))
    assert await found(service, "coffee", not_session="this") == ["I like strong coffee"]


async def test_what_is_older_of_the_session_that_asks_can_be_found(service: EngramService, exchange: Make) -> None:
    old, shown = exchange("I like coffee", session_id="this"), exchange("I like strong coffee", session_id="this")
    for made in (old, shown):
        await service.ingest(made)
    assert old.asked_at < shown.asked_at
    assert await found(service, "coffee", not_session="this", not_since=shown.asked_at) == ["I like coffee"]


async def test_another_respondents_answer_is_kept_and_not_found(service: EngramService, exchange: Make) -> None:
    shadow = exchange("I like coffee", respondent_id="B")
    await service.ingest(shadow)
    await service.settled()
    assert await found(service, "coffee") == []
    assert (await service.get("ann", shadow.engram_id)).respondent_id == "B"


async def test_an_incognito_session_leaves_nothing(
    service: EngramService, exchange: Make, holders: Callable[..., list[str]], embedder: Any
) -> None:
    assert await service.ingest(exchange("My zanzibar plan", incognito=True)) is Ingested.NOT_KEPT
    await service.settled()
    assert await found(service, "zanzibar") == []
    assert holders("zanzibar") == []
    assert embedder.texts == []


async def test_secrets_are_not_stored(
    service: EngramService, exchange: Make, holders: Callable[..., list[str]]
) -> None:
    card = "4111 1111 1111 1111"
    said = exchange(f"My card is {card}", f"You said {card}")
    await service.ingest(said)
    await service.settled()
    assert (await service.get("ann", said.engram_id)).answer == "You said [card number not stored]"
    assert holders(card) == []


async def test_paging_by_time_and_id_leaves_out_none_of_those_asked_at_one_time(
    service: EngramService, exchange: Make
) -> None:
    for number in range(5):
        await service.ingest(exchange(f"number {number}", asked_at=min(float(number), 2.0)))
    last: dict[str, Any] = {}
    listed: list[str] = []
    while found := await service.recent("ann", limit=2, **last):
        listed += [engram.query for engram in found]
        last = {"before": found[-1].asked_at, "before_id": found[-1].engram_id}
    assert sorted(listed) == [f"number {number}" for number in range(5)]
    assert listed[3:] == ["number 1", "number 0"]


async def test_some_engrams_alone_are_listed(service: EngramService, exchange: Make) -> None:
    for name in ("plain", "pinned", "poor", "web"):
        await service.ingest(exchange(name, query_id=name, origin=Origin.WEB if name == "web" else Origin.ASSISTANT))
    await service.pin("ann", exchange("pinned", query_id="pinned").engram_id)
    await service.grade("poor", "A", 2.0)
    listed = [[engram.query for engram in await service.recent("ann", only=only)] for only in get_args(OnlySome)]
    assert listed == [["pinned"], [], ["poor"], ["web"]]


async def test_a_session_is_repeated_in_what_other_sessions_have_recalled_of_it(
    service: EngramService, exchange: Make
) -> None:
    told, other = exchange("I like tea", session_id="s"), exchange("I like coffee", session_id="t")
    await service.ingest(told)
    await service.ingest(other)
    recalling = [("u", told), ("s", told), ("u", other), ("u", told)]
    for number, (session_id, recalled) in enumerate(recalling):
        each = exchange(f"What do I like? {number}", session_id=session_id, recalled=(recalled.engram_id,))
        await service.ingest(each)
    repeats = [engram.engram_id for engram in await service.recent("ann") if engram.query[-1] in "03"]
    assert sorted(await service.session_repeated_in("s")) == sorted(repeats)
    assert await service.session_repeated_in("nobody") == ()


async def test_the_export_holds_everything_of_one_user(service: EngramService, exchange: Make, exported: Any) -> None:
    drafts = [exchange(f"Grüße {number}", query_id=f"q{number}") for number in range(210)]
    await asyncio.gather(*map(service.ingest, drafts))
    await service.ingest(exchange("Bob's", user_id="bob"))
    await service.grade("q7", "A", 4.0)
    lines = await exported(service, "ann")
    assert [line["query"] for line in lines] == [f"Grüße {number}" for number in range(210)]
    assert lines[7]["kind"] == "engram"
    assert lines[7]["changes"][0]["what"] == "score"


async def test_an_embedder_that_fails_leaves_the_words(service: EngramService, exchange: Make, embedder: Any) -> None:
    await service.ingest(exchange("I like coffee"))
    await service.settled()
    embedder.error = ModelError("ollama is gone")
    result = await service.search("ann", "coffee")
    assert [hit.engram.query for hit in result.hits] == ["I like coffee"]
    assert result.degraded == ("ollama is gone",)


async def test_a_second_process_is_refused(opened: Opened, directory: Path) -> None:
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(opened())
        with pytest.raises(AlreadyRunning, match="another process has the memory open"):
            await stack.enter_async_context(opened())


async def test_an_exchange_is_stored_once_however_often_it_comes_and_kept_over_a_restart(
    opened: Opened, exchange: Make
) -> None:
    tea = exchange("I like tea", "Good.", origin=Origin.WEB)
    async with opened() as service:
        assert await asyncio.gather(*(service.ingest(tea) for _ in range(5))) == [Ingested.NEW] + [Ingested.KNOWN] * 4
    async with opened() as service:
        assert await service.ingest(tea) is Ingested.KNOWN
        (engram,) = await service.recent("ann")
        assert (engram.query, engram.answer, engram.origin) == ("I like tea", "Good.", Origin.WEB)


def files_of(directory: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in directory.glob("engrams.db*") if path.suffix != ".db-shm"}


async def test_what_a_killed_process_has_stored_is_there_once_and_found_by_its_meaning_soon(
    opened: Opened, exchange: Make, directory: Path, embedder: Any
) -> None:
    """The files as a kill leaves them: all is stored, some of it embedded."""
    drafts = [exchange(f"stone{number} river{number % 9}") for number in range(20)]
    async with opened() as service:
        for draft in drafts[:10]:
            await service.ingest(draft)
        await service.settled()
        embedder.may_go_on.clear()
        for draft in drafts[10:]:
            await service.ingest(draft)
        killed = files_of(directory)
    for path, content in killed.items():
        path.write_bytes(content)
    embedder.may_go_on.set()
    async with opened() as service:
        assert [await service.ingest(draft) for draft in drafts] == [Ingested.KNOWN] * 20
        await service.settled()
        (hit, *_) = (await service.search("ann", "stone17 river8")).hits
        assert (hit.engram.query, hit.words, hit.cosine is not None) == ("stone17 river8", 1.0, True)
        assert len(await service.recent("ann", limit=99)) == 20


async def test_other_languages_are_found(service: EngramService, exchange: Make) -> None:
    cases = {
        "乌龙茶好吗": "我喜欢喝乌龙茶",
        "Wo ist die Tiefgarage?": "Mein Auto steht in der Tiefgarage am Bahnhof",
        "Wo ist die Goethestraße?": "Ich wohne in der Goethestraße 5",
        "Quel cafe?": "Le café de la gare est fermé",
        "ชาเขียว": "ฉันชอบชาเขียว",
        "Где ключ?": "Мой ключ лежит в ящике",
    }
    for query in (*cases.values(), "The weather is fine and the sea is calm", "Das Wetter ist gut"):
        await service.ingest(exchange(query))
    assert {asked: (await found(service, asked))[0] for asked in cases} == cases


async def test_no_question_breaks_the_search(service: EngramService, exchange: Make) -> None:
    await service.ingest(exchange("I like coffee"))
    for question in ("", '"', "AND OR NOT", "coffee*", "a:b", "NEAR(x y)", "'; DROP TABLE engrams", "x" * 9000, "\x00"):
        await service.search("ann", question)
    assert await found(service, "coffee") == ["I like coffee"]


def rated(sentiment: int | None, rated_at: float) -> AnswerRating:
    return AnswerRating("q", "A", "s", sentiment, rated_at)


async def test_grades_ratings_and_comparisons_are_noted_with_their_history(
    service: EngramService, exchange: Make
) -> None:
    assert not any([await service.grade("q", "A", 4.0), await service.compare("q", "A", "A")])  # there is no answer yet
    ours, theirs = exchange("Tea?", query_id="q"), exchange("Tea?", query_id="q", respondent_id="B")
    for each in (ours, theirs):
        await service.ingest(each)
    assert await service.grade("q", "A", 4.0)
    assert await service.rate(rated(1, 10.0))
    assert await service.compare("q", "A", "B")
    assert await service.compare("q", "B", "tie")
    assert await service.rate(rated(-1, 20.0))
    assert not await service.rate(rated(1, 15.0))
    engram = await service.get("ann", ours.engram_id)
    assert (engram.score, engram.sentiment, engram.winner) == (4.0, -1, "B")
    assert (await service.get("ann", theirs.engram_id)).winner == "tie"
    assert await service.rate(rated(None, 30.0))
    assert (await service.get("ann", ours.engram_id)).sentiment is None
    changes = await service.changes("ann", ours.engram_id)
    assert [(change.what, change.value) for change in changes] == [
        ("score", "4"), ("sentiment", "1"), ("winner", "B"), ("sentiment", "-1"), ("sentiment", None),
    ]  # fmt: skip
    assert changes[1] == Change(10.0, "sentiment", "1")


async def test_ordinary_work_reads_no_more_rows_the_more_a_user_has(service: EngramService, exchange: Make) -> None:
    """Each of these once read every engram of the user, or every one that waits, with 100,000 of them for a second."""
    asked: list[str] = []

    async def traced(callback: Callable[[str], object] | None) -> None:
        await service._store.read(lambda db: db.set_trace_callback(callback))
        await service._store.write(lambda db: db.set_trace_callback(callback))

    first = exchange("My coffee is black", session_id="s")
    await service.ingest(first)
    await service.settled()
    await traced(asked.append)
    for text in ("The train is late", "The beverage is cold"):
        await service.ingest(exchange(text, session_id="s"))
    await service.settled()
    await service.search("ann", "Was the train late?")
    await service.recall("ann", "Was the train late?")
    await service.pin("ann", first.engram_id)
    await service.context_lines("ann")
    await service.notes("ann", history=True)
    await service.entries("ann")
    await service.unclassified(2, newest_first=True)
    await service.status()
    await traced(None)

    def plans(db: Any) -> list[tuple[str, str]]:
        return [
            (sql, step["detail"])
            for sql in dict.fromkeys(asked)
            if sql.startswith("SELECT") and "IN ()" not in sql  # which looks at nothing
            for step in db.execute(f"EXPLAIN QUERY PLAN {sql}")
            if re.match(r"(SCAN|SEARCH) engrams\b", step["detail"])
        ]

    steps = await service._store.read(plans)
    assert len({step for _, step in steps}) > 10
    of_all = r"SCAN engrams$|USING INDEX engrams_of_user|engrams_by_user \(user_id=\?\)$"
    assert [each for each in steps if re.search(of_all, each[1])] == []
    assert [each for each in steps if "count(*) FROM engrams" in each[0] and "COVERING" not in each[1]] == []

"""What the model is told before the conversation."""

from datetime import date

from local.agents.prompt import compose, has_history, without_older_half
from local.models.chat import Json

DAY = date(2026, 7, 14)


def exchanges(number: int) -> list[Json]:
    return [{"role": role, "content": f"{role} {index}"} for index in range(number) for role in ("user", "assistant")]


def test_the_system_message_names_today_and_comes_first() -> None:
    prelude = compose("You are LoCAL2.\n", DAY, exchanges(1))
    assert prelude[0] == {"role": "system", "content": "You are LoCAL2.\n\nToday is Tuesday, 2026-07-14."}
    assert list(prelude[1:]) == exchanges(1)


def test_the_older_half_is_dropped_in_whole_exchanges() -> None:
    prelude = compose("s", DAY, exchanges(5))
    shorter = without_older_half(prelude)
    assert shorter == (prelude[0], *exchanges(5)[6:])
    assert without_older_half(shorter) == (prelude[0], *exchanges(5)[8:])


def test_shortening_again_and_again_ends_without_history() -> None:
    prelude = compose("s", DAY, exchanges(50))
    rounds = 0
    while has_history(prelude):
        prelude, rounds = without_older_half(prelude), rounds + 1
    assert prelude == compose("s", DAY, [])
    assert rounds == 6


def test_system_messages_of_the_caller_survive_wherever_they_stand() -> None:
    extra: Json = {"role": "system", "content": "Answer in rhyme."}
    history = exchanges(2)
    shorter = without_older_half(compose("s", DAY, [*history[:2], extra, *history[2:]]))
    assert [message["content"] for message in shorter[1:]] == ["Answer in rhyme.", "user 1", "assistant 1"]

"""What the model is told before the conversation."""

from datetime import date

from local.agents.prompt import compose
from local.models.chat import Json

DAY = date(2026, 7, 14)


def exchanges(number: int) -> list[Json]:
    return [{"role": role, "content": f"{role} {index}"} for index in range(number) for role in ("user", "assistant")]


def test_the_system_message_names_today_and_comes_first() -> None:
    prelude = compose("You are LoCAL2.\n", DAY, exchanges(1))
    assert prelude[0] == {"role": "system", "content": "You are LoCAL2.\n\nToday is Tuesday, 2026-07-14."}
    assert list(prelude[1:]) == exchanges(1)

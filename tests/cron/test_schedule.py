"""When jobs are due, over two years in three time zones, against a walk over the days of the calendar."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local.core.schedule import BadSchedule, Interval, Schedule, read_schedule, require_future, time_zone

BEGIN = int(datetime(2027, 1, 1, tzinfo=UTC).timestamp())
END = int(datetime(2029, 1, 1, tzinfo=UTC).timestamp())
ZONES = ("UTC", "Europe/Berlin", "America/New_York")
# Expression, and what it means: months, days of the month, days of the week (1 is Monday), hours, minutes; None is any.
FIXED = {
    "30 2 * * *": (None, None, None, {2}, {30}),
    "0 9 * * 1": (None, None, {1}, {9}, {0}),
    "15,45 1,3 * * 0": (None, None, {7}, {1, 3}, {15, 45}),
    "0 0 29 2 *": ({2}, {29}, None, {0}, {0}),
    "59 23 31 * *": (None, {31}, None, {23}, {59}),
}


def first_day(moment: int, zone: ZoneInfo) -> datetime:
    return datetime.fromtimestamp(moment, zone).replace(tzinfo=None, hour=0, minute=0)


@cache
def real(local: datetime, zone: ZoneInfo) -> int:
    """When the clock on the wall shows that, for the first time; where it never does, when it is put forward."""
    moment = local.replace(tzinfo=zone, fold=0)
    seconds = int(moment.timestamp())
    if datetime.fromtimestamp(seconds, zone).replace(tzinfo=None) == local:
        return seconds
    before, after = seconds - 86400, seconds + 86400  # in between the clock is put forward once: it is looked for
    offset = datetime.fromtimestamp(before, zone).utcoffset()
    while after - before > 1:
        middle = (before + after) // 2
        is_before = datetime.fromtimestamp(middle, zone).utcoffset() == offset
        before, after = (middle, after) if is_before else (before, middle)
    return after


def by_the_calendar(expression: str, zone: ZoneInfo) -> Iterator[int]:
    months, days, weekdays, hours, minutes = FIXED[expression]
    day, found = first_day(BEGIN, zone), set()
    while day < datetime(2029, 1, 2):
        is_day = (months is None or day.month in months) and (days is None or day.day in days)
        if is_day and (weekdays is None or day.isoweekday() in weekdays):
            found |= {real(day.replace(hour=hour, minute=minute), zone) for hour in hours for minute in minutes}
        day += timedelta(days=1)
    return (moment for moment in sorted(found) if BEGIN < moment <= END)


def walk(schedule: Schedule, begin: int, end: int) -> Iterator[int]:
    moment = schedule.after(begin)
    while moment is not None and moment <= end:
        yield moment
        moment = schedule.after(moment)


@pytest.mark.parametrize("expression", FIXED)
def test_a_job_at_set_hours_is_due_when_the_clock_on_the_wall_shows_them_and_once(expression: str) -> None:
    for zone in map(ZoneInfo, ZONES):
        expected = list(by_the_calendar(expression, zone))
        assert expected and list(walk(read_schedule(expression, zone, BEGIN), BEGIN, END)) == expected, zone


@pytest.mark.parametrize("name", ZONES)
def test_a_job_at_every_quarter_of_an_hour_goes_by_real_time_also_when_clocks_are_changed(name: str) -> None:
    schedule = read_schedule("*/15 * * * *", ZoneInfo(name), BEGIN)
    for month, day in ((3, 14), (3, 28), (10, 31), (11, 7)):  # of 2027
        begin = int(datetime(2027, month, day, tzinfo=UTC).timestamp())
        assert list(walk(schedule, begin, begin + 86400)) == list(range(begin + 900, begin + 86401, 900))


@pytest.mark.parametrize("name", ZONES)
def test_the_last_moment_and_those_before_it_are_found_from_any_time(name: str) -> None:
    for text in ("30 2 * * *", "*/20 1-4 * * 0", "0 0 29 2 *", "every 90m", "at 2027-03-28T02:30"):
        schedule = read_schedule(text, ZoneInfo(name), BEGIN)
        end = BEGIN + 200 * 86400
        moments = list(walk(schedule, BEGIN, end))
        assert schedule.last(BEGIN, end) == (moments[-1] if moments else None, len(moments))
        assert schedule.between(BEGIN, end, 7) == moments[-7:]
        assert schedule.last(end, end) == (None, 0)


def test_a_time_that_clocks_show_twice_is_the_first_and_one_that_they_leave_out_is_an_hour_later() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    twice = read_schedule("at 2027-10-31T02:30", berlin, BEGIN)
    assert twice.after(BEGIN) == int(datetime(2027, 10, 31, 0, 30, tzinfo=UTC).timestamp())
    never = read_schedule("at 2027-03-28T02:30", berlin, BEGIN)
    assert never.after(BEGIN) == int(datetime(2027, 3, 28, 1, 30, tzinfo=UTC).timestamp())
    assert read_schedule("at 2027-03-28T02:30+00:00", berlin, BEGIN).after(BEGIN) == BEGIN + 86 * 86400 + 9000


def test_every_so_often_is_counted_from_when_the_job_was_made() -> None:
    schedule = read_schedule("every  2 hours", ZoneInfo("UTC"), BEGIN + 5)
    assert schedule == Interval(BEGIN + 5, 7200)
    assert (schedule.after(BEGIN - 9999), schedule.after(BEGIN + 7205)) == (BEGIN + 7205, BEGIN + 14405)


def test_in_a_while_is_once_counted_from_when_the_job_was_made() -> None:
    schedule = read_schedule("in 90 seconds", ZoneInfo("UTC"), BEGIN + 0.5)
    assert (schedule.after(BEGIN), schedule.after(BEGIN + 90)) == (BEGIN + 90, None)


BAD = (
    "in", "in 0s", "in five minutes", "in 2y",
    "", " ", "every", "every 0m", "every 5s", "every 400d", "every 1.5h", "every m", "at", "at noon", "at 2026-13-01",
    "at 99999999-01-01", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 13 *",
    "* * * * 9", "*/0 * * * *", "5-1 * * * *", "a b c d e", "0 0 30 2 *", "@reboot", "@fortnightly", "1,,2 * * * *",
    "* * * * MON#6", "* * * * L", "* * L-3 * *", "MON * * * *", "\u0661 * * * *", "every \u0661m", "* * * * *\x00",
    "x" * 300, "at 2026-01-01T00:00+99:00",
)  # fmt: skip


def test_a_schedule_that_cannot_be_read_is_refused_in_one_line() -> None:
    for text in BAD:
        with pytest.raises(BadSchedule) as refused:
            require_future(read_schedule(text, ZoneInfo("Europe/Berlin"), BEGIN), BEGIN)
        assert "\n" not in str(refused.value) and str(refused.value).startswith("schedule"), text


WORDS = st.sampled_from(
    ["*", "*/5", "1-5", "0", "59", "60", "-1", "L", "LW", "#", "MON#2", "JAN", "1,2", "1/2", "@daily", "every", "at",
     "5m", "1h", "2026-10-25T02:30", "2026-02-30", "5L", "2L/3", "*-*", "\x00", "\u202e", "9" * 50]
)  # fmt: skip


@settings(max_examples=40, derandomize=True)
@given(st.lists(WORDS, max_size=7))
def test_whatever_is_given_as_a_schedule_is_read_or_refused_in_one_line(words: list[str]) -> None:
    try:
        schedule = read_schedule(" ".join(words), ZoneInfo("America/New_York"), BEGIN)
        assert require_future(schedule, BEGIN) > BEGIN
    except BadSchedule as refused:
        assert "\n" not in str(refused)


def test_a_time_zone_that_there_is_not_is_refused_in_one_line() -> None:
    for name in ("", "Mars/Olympus", "../../etc/passwd", "UTC\x00", "/etc/localtime", "a" * 300, "."):
        with pytest.raises(BadSchedule, match="time_zone"):
            time_zone(name)

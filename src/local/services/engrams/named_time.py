"""The time that a question names, as in "last week" or "in May 2023": what was said then is looked for first."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

TOLD_LATER = timedelta(days=2)  # what happens on a day is told on the next ones, too
_MONTHS = (
    "january januar janvier enero", "february februar février fevrier febrero", "march märz maerz mars marzo",
    "april avril abril", "may mai mayo", "june juni juin junio", "july juli juillet julio", "august août aout agosto",
    "september septembre septiembre", "october oktober octobre octubre", "november novembre noviembre",
    "december dezember décembre decembre diciembre",
)  # fmt: skip
_MONTH_NUMBERS = {name: number for number, names in enumerate(_MONTHS, start=1) for name in names.split()}
_DAYS: Mapping[str, int] = {
    name: number
    for number, names in enumerate(
        ("monday montag lundi lunes", "tuesday dienstag mardi martes", "wednesday mittwoch mercredi",
         "thursday donnerstag jeudi jueves", "friday freitag vendredi viernes", "saturday samstag samedi",
         "sunday sonntag dimanche domingo")
    )
    for name in names.split()
}  # fmt: skip
_UNIT_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
_UNITS: Mapping[str, str] = {
    name: unit
    for unit, names in {
        "day": "day days tag tage tagen jour jours día días dia dias", "week": "week weeks woche wochen semaine"
        " semaines semana semanas", "month": "month months monat monate monaten mois mes meses",
        "year": "year years jahr jahre jahren an ans année año años",
    }.items()
    for name in names.split()
}  # fmt: skip
_NUMBERS: Mapping[str, int] = {
    name: number
    for number, names in {
        1: "a an one ein eine einem einer un une una", 2: "two couple zwei deux dos", 3: "three few drei trois tres",
        4: "four vier quatre cuatro", 5: "five fünf cinq cinco", 6: "six sechs seis", 7: "seven sieben sept siete",
        8: "eight acht huit ocho", 9: "nine neun neuf nueve", 10: "ten zehn dix diez",
    }.items()
    for name in names.split()
}  # fmt: skip
# Which unit, and how many of them back. "Today" is left out: it is when something is asked, not when it was said.
_SPOKEN: Mapping[str, tuple[str, int]] = {
    phrase: (unit, back)
    for (unit, back), phrases in {
        ("day", 0): "this morning|earlier today|heute früh|heute morgen|ce matin|esta mañana",
        ("day", 1): "yesterday|last night|gestern|ayer|昨天|昨日",
        ("day", 2): "the day before yesterday|vorgestern|avant-hier|anteayer|前天",
        ("week", 0): "this week|diese woche|dieser woche|cette semaine|esta semana|这周|今週",
        ("week", 1): "last week|the week before|letzte woche|letzter woche|vorige woche|la semaine dernière"
        "|la semana pasada|上周|上个星期|先週",
        ("month", 0): "this month|diesen monat|ce mois-ci|este mes|这个月|今月",
        ("month", 1): "last month|letzten monat|letztem monat|vorigen monat|le mois dernier|el mes pasado|上个月|先月",
        ("year", 1): "last year|letztes jahr|letztem jahr|voriges jahr|l'année dernière|l'an dernier|el año pasado"
        "|去年",
    }.items()
    for phrase in phrases.split("|")
}


@dataclass(frozen=True, slots=True)
class NamedTime:
    """A time from `begins` up to `ends`, in seconds since 1970. `spoken` is what of the question names it, where that
    can be no word of what was said then."""

    begins: float
    ends: float
    spoken: str = ""


def named_time(question: str, now: float) -> NamedTime | None:
    """The first time that a question names, in local time, reckoned from `now`; None if it names none. In English,
    German, French and Spanish, and a little Chinese and Japanese."""
    text, moment = question.casefold(), datetime.fromtimestamp(now)
    for pattern, meaning in _WAYS:
        for found in pattern.finditer(text):
            try:
                begins, ends, spoken = meaning(found, moment)
                return NamedTime(begins.timestamp(), (ends + TOLD_LATER).timestamp(), spoken)
            except (ValueError, OverflowError, OSError):  # the 31st of February, the year 0
                continue
    return None


_Span = tuple[datetime, datetime, str]


def _spoken(found: re.Match[str], now: datetime) -> _Span:
    unit, back = _SPOKEN[found[0]]
    begins, ends = _unit_around(now, unit)
    for _ in range(back):
        begins, ends = _unit_around(begins - timedelta(days=1), unit)
    return begins, ends, found[0]


def _ago(found: re.Match[str], now: datetime) -> _Span:
    days = _UNIT_DAYS[_UNITS[found["unit"]]]
    number = int(found["number"]) if found["number"].isdigit() else _NUMBERS[found["number"]]
    middle = _midnight(now) - timedelta(days=number * days)
    return middle - timedelta(days=days // 2), middle + timedelta(days=days // 2 + 1), found[0]


def _weekday(found: re.Match[str], now: datetime) -> _Span:
    back = (now.weekday() - _DAYS[found["day"]] - 1) % 7 + 1
    day = _midnight(now) - timedelta(days=back)
    return day, day + timedelta(days=1), ""


def _iso(found: re.Match[str], now: datetime) -> _Span:
    day = datetime.fromisoformat(found[0])
    return day, day + timedelta(days=1), ""


def _date(found: re.Match[str], now: datetime) -> _Span:
    month, day = _MONTH_NUMBERS[found["month"]], int(found["day"])
    begins = datetime(_year(found["year"], now, month, day), month, day)
    return begins, begins + timedelta(days=1), ""


def _month(found: re.Match[str], now: datetime) -> _Span:
    month = _MONTH_NUMBERS[found["month"]]
    return *_unit_around(datetime(_year(found["year"], now, month, 1), month, 1), "month"), ""


def _whole_year(found: re.Match[str], now: datetime) -> _Span:
    return *_unit_around(datetime(int(found["year"]), 1, 1), "year"), ""


def _year(told: str | None, now: datetime, month: int, day: int) -> int:
    """The year that is told, else the one in which the date was last."""
    return int(told) if told else now.year - ((month, day) > (now.month, now.day))


def _unit_around(moment: datetime, unit: str) -> tuple[datetime, datetime]:
    """The calendar's day, week (from Monday), month or year that a moment lies in."""
    day = _midnight(moment)
    match unit:
        case "day":
            return day, day + timedelta(days=1)
        case "week":
            begins = day - timedelta(days=day.weekday())
            return begins, begins + timedelta(days=7)
        case "month":
            begins = day.replace(day=1)
            return begins, (begins + timedelta(days=31)).replace(day=1)
        case _:
            begins = day.replace(month=1, day=1)
            return begins, begins.replace(year=begins.year + 1)


def _midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def _any(names: Mapping[str, object]) -> str:
    return "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))


_NAME, _OF_YEAR = rf"(?P<month>{_any(_MONTH_NUMBERS)})\b", r"(?P<year>(?:19|20)\d\d)\b"
_COUNT = rf"(?P<number>\d{{1,3}}|{_any(_NUMBERS)})\s+(?:of\s+)?(?P<unit>{_any(_UNITS)})\b"
_UNSPACED = "|".join(phrase for phrase in _SPOKEN if phrase > "\u3000")  # between words that have no spaces
_Meaning = Callable[[re.Match[str], datetime], _Span]
_WAYS: tuple[tuple[re.Pattern[str], _Meaning], ...] = tuple(
    (re.compile(pattern), meaning)
    for pattern, meaning in (
        (r"\b(?:19|20)\d\d-\d\d-\d\d\b", _iso),
        (rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.|er)?\s+(?:of\s+|de\s+)?{_NAME}(?:,?\s+(?:de\s+)?{_OF_YEAR})?", _date),
        (rf"\b{_NAME}\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s+{_OF_YEAR})?", _date),
        (rf"\b{_NAME}(?:,?\s+(?:of\s+|de\s+)?{_OF_YEAR})", _month),
        (rf"\b(?:in|during|since|last|this|im|seit|letzten|en|depuis)\s+{_NAME}(?P<year>)", _month),
        (rf"(?<!\w)(?:{_any(_SPOKEN)})(?!\w)|{_UNSPACED}", _spoken),
        (rf"\b{_COUNT}\s+ago\b", _ago),
        (rf"\b(?:vor|il y a|hace)\s+(?:etwa\s+)?{_COUNT}", _ago),
        (rf"\b(?:on|last|am|letzten)\s+(?P<day>{_any(_DAYS)})\b", _weekday),
        (rf"\b(?:in|during|since|im jahr|en)\s+{_OF_YEAR}", _whole_year),
    )
)  # fmt: skip

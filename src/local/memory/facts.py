"""The facts that a user stated: their stored form, and the findings of a model in an exchange."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from local.core.errors import NotOnRecord, UntrustedFact
from local.core.text import masked
from local.core.words import content_words
from local.memory.messages import HEALTH_SLOT
from local.memory.store import Engram, Origin, StatedFact, Statement, slot_key, stored_engram


@dataclass(frozen=True, slots=True)
class Outdated:
    """A fact stated by an engram that no longer holds; `values` are what the user said instead and still holds, none if
    that is gone, too, or the fact was only retracted. `engram_ids` are the engrams with these values.
    """

    slot: str
    value: str
    superseded_at: float
    values: tuple[str, ...]
    engram_ids: tuple[str, ...]


def of_engram(db: sqlite3.Connection, engram_id: str) -> list[StatedFact]:
    """Return the facts that the user stated in one exchange, whether they hold or not."""
    return _facts(db, "engram_id = ? ORDER BY fact_id", (engram_id,))


def current(db: sqlite3.Connection, user_id: str) -> list[StatedFact]:
    """Return a user's current facts, by slot; see `StatedFact` for several of one slot."""
    stored = _facts(db, "facts.user_id = ? AND superseded_at IS NULL ORDER BY slot_key, stated_at", (user_id,))
    doubts = [fact for fact in stored if not fact.confirmed]
    return [
        replace(fact, questioned=any(_questions(doubt, fact) for doubt in doubts)) for fact in stored if fact.confirmed
    ]


def unconfirmed(db: sqlite3.Connection, user_id: str) -> list[StatedFact]:
    """Return the facts that a user may have stated and that are neither confirmed nor dropped, the latest first; what
    was said several times once.
    """
    found = _facts(db, "facts.user_id = ? AND NOT confirmed ORDER BY stated_at DESC, fact_id DESC", (user_id,))
    return list({_content(fact): fact for fact in reversed(found)}.values())[::-1]


def _content(fact: StatedFact) -> tuple[str, str]:
    return slot_key(fact.slot), fact.value.casefold()


def holding(db: sqlite3.Connection, user_id: str, fact_id: int) -> StatedFact:
    """A fact of a user's that holds or waits to be confirmed. Raises `NotOnRecord`."""
    found = _facts(db, "fact_id = ? AND facts.user_id = ? AND superseded_at IS NULL", (fact_id, user_id))
    if not found:
        raise NotOnRecord(f"there is no fact {fact_id}, or it holds no more")
    return found[0]


def _questions(doubt: StatedFact, fact: StatedFact) -> bool:
    """Whether an unconfirmed fact may have changed one that holds: later, of the same slot, with another value; of
    several that hold beside each other the one with a word in common.
    """
    if slot_key(doubt.slot) != slot_key(fact.slot) or doubt.stated_at <= fact.stated_at:
        return False
    is_other = doubt.value.casefold() != fact.value.casefold()
    return is_other and (not fact.added or bool(content_words(doubt.value) & content_words(fact.value)))


def history(db: sqlite3.Connection, user_id: str) -> list[StatedFact]:
    """Return all facts of a user, whether they hold or not, by slot, oldest first; also unconfirmed ones."""
    return _facts(db, "facts.user_id = ? ORDER BY slot_key, stated_at, fact_id", (user_id,))


def outdated(db: sqlite3.Connection, engram_id: str) -> tuple[Outdated, ...]:
    """Return the facts of an engram that no longer hold."""
    facts = _facts(db, "engram_id = ? AND superseded_at IS NOT NULL ORDER BY fact_id", (engram_id,))
    return tuple(_outdated(fact, current_of_slot(db, fact.user_id, fact.slot)) for fact in facts)


def _outdated(fact: StatedFact, current: Sequence[StatedFact]) -> Outdated:
    values, engrams = tuple(now.value for now in current), (fact.engram_id, *(now.engram_id for now in current))
    return Outdated(fact.slot, fact.value, fact.superseded_at or 0.0, values, tuple(dict.fromkeys(engrams)))


def current_of_slot(db: sqlite3.Connection, user_id: str, slot: str) -> list[StatedFact]:
    """Return the current facts of one slot, the latest first."""
    where = "facts.user_id = ? AND slot_key = ? AND superseded_at IS NULL AND confirmed ORDER BY stated_at DESC"
    return _facts(db, where, (user_id, slot_key(slot)))


def of_slot(db: sqlite3.Connection, user_id: str, slot: str) -> list[StatedFact]:
    """Return all confirmed facts of a slot, whether they hold or not, oldest first."""
    return _facts(db, "facts.user_id = ? AND slot_key = ? AND confirmed ORDER BY stated_at", (user_id, slot_key(slot)))


def _facts(db: sqlite3.Connection, where: str, key: Sequence[object]) -> list[StatedFact]:
    return [stored_fact(row) for row in db.execute(f"{SELECT} WHERE {where}", tuple(key)).fetchall()]


SELECT = "SELECT facts.*, engram_id FROM facts JOIN engrams USING (number)"


def stored_fact(row: sqlite3.Row) -> StatedFact:
    """A fact from a row of `SELECT`."""
    return StatedFact(
        row["fact_id"], row["user_id"], row["engram_id"], row["slot"], row["value"], row["stated_at"],
        row["superseded_by"], row["superseded_at"], bool(row["certain"]), bool(row["added"]),
        bool(row["confirmed"]), holds_from=row["holds_from"], holds_until=row["holds_until"],
    )  # fmt: skip


class FactOperation(StrEnum):
    """The effect of a fact on the others of its slot."""

    SUPERSEDE = "supersede"
    ADD = "add"  # all of them hold
    CONTRADICT = "contradict"  # it is unknown which holds
    RETRACT = "retract"  # they no longer hold, without a replacement
    EXTEND = "extend"  # it is more precise than another one in the same exchange


@dataclass(frozen=True, slots=True)
class FactFinding:
    """One fact that a user stated or retracted; a retracted one may name which of the slot's values. One that is not
    `confirmed` was found by a model and confirmed by nothing: it is stored, and changes no other. `extends` is the
    value that it makes more precise. `since` and `until` are days as `StatedFact.holds_from` is.
    """

    way: FactOperation
    slot: str
    value: str
    certain: bool = True
    confirmed: bool = True
    extends: str = ""
    since: str = ""
    until: str = ""


@dataclass(frozen=True, slots=True)
class Classified:
    """The findings on an exchange. `is_parsed` is False if the model's reply was unreadable."""

    is_parsed: bool
    intent: str | None = None
    entities: tuple[str, ...] = ()
    findings: tuple[FactFinding, ...] = ()


# Subjects of facts, for questions that use other words than the fact: a diet where an allergy is known.


class Kind(StrEnum):
    """A matter that facts and questions are about, whatever words they have for it."""

    HEALTH = "health"  # and safety: wrong answers could hurt somebody
    EATING = "eating"
    HOME = "home"
    WORK = "work"
    FAMILY = "family"
    PETS = "pets"
    BIRTH = "birth"
    VEHICLE = "vehicle"
    SPARE_TIME = "spare time"


# What may hurt the user, as people say it: allergies, reactions to food or medicine, conditions, doses.
HARMS: Final = (
    r"all?[eéè]rg|аллерг|anaphyla|epi-?pen|intoleran|unverträg|uczul|co?eliac|celiac|zöliak|celíac|diab[eé]t|диабет"
    r"|insulin|asthma|asma\b|astma|астм|epilep|pregnan|schwanger|enceinte|embaraz|incinta|беремен|pacemaker"
    r"|heart (?:condition|disease|attack|failure)|blood (?:pressure|thinner)|blutverdünn|\d+ ?(?:mg|mcg|µg)\b"
    r"|hives|rash(?:es)?\b|swell|itch|react(?:s|ed)? (?:very |really |so )?(?:badly|severely|strongly|violently)"
    r"|reaction to|(?:makes?|made) me (?:\w+ )?(?:ill|sick|vomit|throw up|faint|wheeze|itch\w*|swell)"
    r"|throw up (?:from|after)|nearly (?:killed|died)|my throat"
    r"|(?:can['’]?t|can(?:not| not)|must(?:n['’]t| not)|not allowed to|may not|don['’]t|do not) (?:eat|drink|tolerate"
    r"|digest|have (?:any )?(?:milk|dairy|nuts|peanuts|eggs|wheat|gluten|shellfish|fish|soy|sugar|alcohol|meat))"
    r"|can['’]?t (?:handle|stomach|take) (?:milk|dairy|nuts|peanuts|eggs|wheat|gluten|shellfish|aspirin|ibuprofen)"
    r"|(?:have to|need to|must) (?:avoid|stay away from|keep away from)"
    r"|vertrage\b|quaddeln|nesselsucht|ausschlag\b|juckreiz|juckt|mir wird (?:\w+ ){0,4}(?:schlecht|übel)"
    r"|darf (?:\w+ ){0,4}(?:essen|trinken|einnehmen)"
    r"|urticaire|(?:supporte|tolère|digère) (?:pas|mal)|peux (?:pas|plus) (?:manger|boire|prendre)|rend(?:ent)? malade"
    r"|urticaria|sarpullido|ronchas|no tolero|no puedo (?:comer|tomar|beber)|me (?:sientan?|caen?|hacen?) mal"
    r"|orticaria|non tollero|non posso (?:mangiare|bere|prendere)|mi fa(?:nno)? (?:stare )?male"
    r"|urticária|não (?:tolero|posso (?:comer|beber|tomar))|me faz(?:em)? mal"
    r"|galbulten|netelroos|uitslag van|verdraag|kan niet tegen|mag (?:\w+ ){0,3}(?:eten|drinken)"
    r"|сып[ьи]|крапивниц|не переношу|нельзя (?:есть|пить)|отекаю|отёк|wysypk|pokrzywk|nie toleruj|nie mogę (?:jeść|pić)"
    r"|过敏|過敏|アレルギー|알레르기|起疹|荨麻疹|蕁麻疹|じんましん|発疹|かゆく|不耐|不能(?:吃|喝)|食べられない|飲めない"
    r"|食べられません|飲めません|두드러기|못 ?먹|糖尿|哮喘|喘息|妊娠|怀孕"
)
_KINDS: Final = {  # the beginnings of words; slots are English, but questions and edited lines may not be
    Kind.HEALTH: HARMS + r"|gluten|lactose|laktose|medic|médic|medik|prescri|drugs?\b|pills?\b|dosage|disease|illness"
    r"|diagnos|disab|(?:medical|health) |blood (?:type|group)|blutgruppe|emergency|notfall|urgence|emergencia|diet\b"
    r"|dietary|vegan|vegetari|végétar|halal|kosher|krank|kranken|health\b|gesundheit|salud\b|santé|素食"
    r"|vaccin|immuni[sz]|impf|surger|implant|therap|symptom|vital signs|chronic|advance directive|care plan"
    r"|plan of care|functional status|medical",
    Kind.EATING: r"allerg|alerg|intoleran|unverträg|diet|vegan|vegetari|végétar|halal|kosher|gluten|la[ck]tose|foods?\b"
    r"|eat(?:s|en|ing)?\b|cook|meals?\b|recipe|essen\b|esse\b|koche|mange[rz]?\b|nourriture|comer\b|comida|cocin"
    r"|mangiare|cibo|cucin|过敏|過敏|アレルギー|素食",
    Kind.HOME: r"home\b|live[sd]?\b|(?<!mail )address\b|resid|cit(?:y|ies)\b|town\b|moved\b|wohn|zuhause|adresse\b"
    r"|habite|domicile|viv[oíe]|ciudad|dirección|abit[oai]\b|città|indirizzo|moro\b|morada|endereço|woon|住",
    Kind.WORK: r"work(?:s|ed|ing)?\b|jobs?\b|employ|occupation|profession|career|arbeit|beruf|travail|métier|emploi"
    r"|trabaj|empleo|lavor|trabalh|仕事|工作",
    Kind.FAMILY: r"famil|wife|husband|spouse|partner|marri|child|kids?\b|daughter|sons?'?s? name|my sons?\b|mother"
    r"|father|parents?\b|brother|sister|sibling|ehefrau|meine? (?:frau|mann)\b|verheiratet|kinder|tochter|töchter"
    r"|mutter|eltern|bruder|schwester|femme\b|mari\b|enfant|fille|mère|père|frère|sœur|espos[oa]|marido|hij[oa]s?\b"
    r"|padres?\b|madre|herman[oa]|moglie|marito|figli[oae]?\b|fratell|sorell|filh[oa]",
    Kind.PETS: r"pets?\b|cats?\b|dogs?\b|animals?\b|animaux|haustier|katze|hund\b|chien|mascota|gato|perro|gatto\b",
    Kind.BIRTH: r"birth|born\b|age\b|how old|geburt|geboren|wie alt|naissance|anniversaire|quel âge|nacimiento|nací\b"
    r"|cumplea|edad\b|compleanno|nascita|aniversário",
    Kind.VEHICLE: r"cars?\b|drives?\b|vehicle|motorbike|bicycle|auto\b|fahrzeug|voiture|coche|macchina",
    Kind.SPARE_TIME: r"hobb|interests\b|(?:spare|free) time|leisure|freizeit|loisirs?\b|tempo libero|tiempo libre",
}
_BEGINS: Final = r"(?:\b|(?<=[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]))"  # of a word, also where no spaces are
_KIND_PATTERNS: Final = {kind: re.compile(rf"{_BEGINS}(?:{each})", re.IGNORECASE) for kind, each in _KINDS.items()}
_HARMS_PATTERN: Final = re.compile(rf"{_BEGINS}(?:{HARMS})", re.IGNORECASE)


def kinds_of(text: str) -> frozenset[Kind]:
    """The matters that a text is about: a question, or a fact as slot and value."""
    return frozenset(kind for kind, pattern in _KIND_PATTERNS.items() if pattern.search(text))


def is_of_health(slot: str, value: str) -> bool:
    """Whether a fact is about health or safety: an allergy, an illness, a medicine, a diet, an emergency."""
    return Kind.HEALTH in kinds_of(f"{slot}: {value}")


def harms_named(text: str) -> int:
    """How often a text speaks of an allergy, a reaction, an illness or a dose."""
    return len(_HARMS_PATTERN.findall(text))


def days_told(holds_from: str, holds_until: str, today: str) -> tuple[str, ...]:
    """The days from and until which a fact holds, in words, and whether that is to come or over; days as 2026-11-27."""
    begins = f"from {holds_from}{', so not yet' if holds_from > today else ''}" if holds_from else ""
    ends = f"until {holds_until}{', so no longer' if holds_until < today else ''}" if holds_until else ""
    return tuple(filter(None, (begins, ends)))


# The effects on facts: a new one replaces earlier ones, is added to them, or they end.


def supersede(db: sqlite3.Connection, statement: Statement) -> StatedFact:
    """Store a fact in place of the current ones of its slot, or behind them if they were stated later. An uncertain one
    replaces none.

    Storing it twice has no further effect. Raises `NotOnRecord`, `UntrustedFact`.
    """
    if not statement.certain:
        return contradict(db, statement)
    fact, current = _store(db, statement)
    if fact is None:
        return current[0]
    if not _mark_behind_later(db, fact, current):
        for other in current:
            if other.stated_at <= fact.stated_at:
                _mark(db, other, fact)
    return _fact(db, fact.fact_id)


def add(db: sqlite3.Connection, statement: Statement) -> StatedFact:
    """Store a fact that holds beside the current ones of its slot. Raises as `supersede` does."""
    return _beside(db, statement, added=True)


def contradict(db: sqlite3.Connection, statement: Statement) -> StatedFact:
    """Store a fact beside those of its slot, because it is unknown which holds. Raises as `supersede`."""
    return _beside(db, replace(statement, certain=False), added=False)


def note_unconfirmed(db: sqlite3.Connection, statement: Statement) -> None:
    """Store a fact that changes no other and is not current. Raises as `supersede` does."""
    _store(db, replace(statement, confirmed=False))


def drop(db: sqlite3.Connection, user_id: str, fact_id: int) -> StatedFact:
    """Remove an unconfirmed fact of a user's and return it; also where it was said again, and those of the same
    exchange that only say a part of it. Raises `NotOnRecord`.
    """
    found = _facts(db, "fact_id = ? AND facts.user_id = ? AND NOT confirmed", (fact_id, user_id))
    if not found:
        raise NotOnRecord(f"there is no unconfirmed fact {fact_id}")
    others = _facts(db, "facts.user_id = ? AND NOT confirmed", (user_id,))
    gone = [other for other in others if _content(other) == _content(found[0]) or is_part(other, found[0])]
    db.executemany("DELETE FROM facts WHERE fact_id = ?", [(fact.fact_id,) for fact in gone])
    return found[0]


def is_part(fact: StatedFact, of: StatedFact) -> bool:
    """Whether a fact says a part of what a sentence about the user's health says, in the same exchange."""
    is_sentence = slot_key(of.slot) == HEALTH_SLOT and of.engram_id == fact.engram_id and of.fact_id != fact.fact_id
    return is_sentence and fact.value.casefold() in of.value.casefold() and is_of_health(fact.slot, fact.value)


def settle(db: sqlite3.Connection, engram_id: str, findings: Iterable[FactFinding]) -> None:
    """Remove the unconfirmed facts of an exchange that confirmed findings have settled."""
    sure = [finding for finding in findings if finding.confirmed]
    doubts = _facts(db, "engram_id = ? AND NOT confirmed", (engram_id,))
    settled = [(doubt.fact_id,) for doubt in doubts if any(_settles(finding, doubt) for finding in sure)]
    db.executemany("DELETE FROM facts WHERE fact_id = ?", settled)


def _settles(finding: FactFinding, doubt: StatedFact) -> bool:
    if slot_key(doubt.slot) != HEALTH_SLOT:
        return slot_key(finding.slot) == slot_key(doubt.slot) or finding.value.casefold() == doubt.value.casefold()
    return is_of_health(finding.slot, finding.value) and finding.value.casefold() in doubt.value.casefold()


def retract(db: sqlite3.Connection, engram: Engram, slot: str, value: str = "") -> int:
    """End the facts that the user stated about a slot before an exchange, without replacement; with a value only that
    one. Returns how many there were.
    """
    gone = [
        fact
        for fact in current_of_slot(db, engram.user_id, slot)
        if fact.stated_at <= engram.asked_at and value.casefold() in ("", fact.value.casefold())
    ]
    sql = (
        "UPDATE facts SET superseded_at = ?, retracted_in = (SELECT number FROM engrams WHERE engram_id = ?)"
        " WHERE fact_id = ?"
    )
    db.executemany(sql, [(engram.asked_at, engram.engram_id, fact.fact_id) for fact in gone])
    return len(gone)


def forget(db: sqlite3.Connection, numbers: Collection[int]) -> None:
    """Remove the facts of engrams that are about to be deleted: those that they replaced or retracted hold again,
    unless another one has replaced them since. No row refers to them afterwards.
    """
    changed = set[int]()
    for number in numbers:
        for row in db.execute("SELECT * FROM facts WHERE number = ? ORDER BY fact_id", (number,)).fetchall():
            replaced = _rows(db, "superseded_by", row["fact_id"])
            db.execute("DELETE FROM facts WHERE fact_id = ?", (row["fact_id"],))
            changed |= _end(db, replaced, (row["superseded_by"], row["superseded_at"], row["retracted_in"]))
        changed |= _end(db, _rows(db, "retracted_in", number), _NO_END)
    for number in changed - set(numbers):
        db.execute(_SUCCESSOR_OF_ENGRAM, {"number": number})


_End = tuple[int | None, float | None, int | None]  # superseded_by, superseded_at, retracted_in
_NO_END: _End = (None, None, None)
_SUCCESSOR_OF_ENGRAM = """
    UPDATE engrams SET superseded_by = (
        SELECT successor.engram_id FROM facts AS old
        JOIN facts AS new ON new.fact_id = old.superseded_by JOIN engrams AS successor ON successor.number = new.number
        WHERE old.number = :number AND new.number != :number AND lower(new.value) != lower(old.value)
        AND NOT EXISTS (SELECT 1 FROM facts WHERE facts.number = :number AND superseded_at IS NULL AND confirmed)
        ORDER BY old.superseded_at DESC LIMIT 1
    ) WHERE number = :number
"""


def _end(db: sqlite3.Connection, rows: Iterable[sqlite3.Row], end: _End) -> set[int]:
    """Change the end of facts, or remove it, unless their slot has another fact since. Returns the numbers of their
    engrams.
    """
    sql = "UPDATE facts SET superseded_by = ?, superseded_at = ?, retracted_in = ? WHERE fact_id = ?"
    numbers = set[int]()
    for row in rows:
        db.execute(sql, (*end, row["fact_id"]))
        if end == _NO_END:
            fact = stored_fact(row)
            _mark_behind_later(db, fact, of_slot(db, fact.user_id, fact.slot))
        numbers.add(row["number"])
    return numbers


def _rows(db: sqlite3.Connection, column: str, key: int) -> list[sqlite3.Row]:
    return db.execute(f"{SELECT} WHERE facts.{column} = ? ORDER BY stated_at", (key,)).fetchall()


def _beside(db: sqlite3.Connection, statement: Statement, *, added: bool) -> StatedFact:
    fact, current = _store(db, statement, added=added)
    if fact is None:
        return current[0]
    if not _mark_behind_later(db, fact, current):
        for other in current:
            if other.value.casefold() == fact.value.casefold():  # repeated; a certain one stays certain
                _mark(db, *((fact, other) if other.certain and not fact.certain else (other, fact)))
    return _fact(db, fact.fact_id)


def _store(
    db: sqlite3.Connection, statement: Statement, *, added: bool = False
) -> tuple[StatedFact | None, list[StatedFact]]:
    """The new fact and the others of its slot that hold; None and the stored fact if it is known."""
    if statement.origin is not Origin.USER:
        raise UntrustedFact(statement.slot, statement.origin)
    engram = db.execute("SELECT number, user_id FROM engrams WHERE engram_id = ?", (statement.engram_id,)).fetchone()
    if engram is None:
        raise NotOnRecord(f"there is no engram {statement.engram_id}; it may have been deleted")
    user_id, key, value = engram["user_id"], slot_key(statement.slot), masked(statement.value.strip())
    said_there = of_engram(db, statement.engram_id)
    if known := [fact for fact in said_there if (slot_key(fact.slot), fact.value) == (key, value)]:
        return None, known
    (fact_id,) = db.execute(
        "INSERT INTO facts (user_id, number, slot, slot_key, value, stated_at, certain, added, confirmed,"
        " holds_from, holds_until) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING fact_id",
        (user_id, engram["number"], _spelt(db, user_id, statement.slot), key, value, statement.stated_at,
         statement.certain, added, statement.confirmed, statement.holds_from, statement.holds_until),
    ).fetchone()  # fmt: skip
    current = current_of_slot(db, user_id, key)
    return _fact(db, fact_id), [other for other in current if other.fact_id != fact_id]


def _mark_behind_later(db: sqlite3.Connection, fact: StatedFact, others: Iterable[StatedFact]) -> bool:
    """Whether one of the others, stated later, has taken the fact's place; that is noted then."""
    later = [other for other in others if other.stated_at > fact.stated_at and other.certain and not other.added]
    if later:
        _mark(db, fact, later[0])
    return bool(later)


def _mark(db: sqlite3.Connection, old: StatedFact, new: StatedFact) -> None:
    """Note that a fact is superseded, and its engram, too, once none of its facts holds any more."""
    sql = "UPDATE facts SET superseded_by = ?, superseded_at = ? WHERE fact_id = ?"
    db.execute(sql, (new.fact_id, new.stated_at, old.fact_id))
    if old.engram_id == new.engram_id or old.value.casefold() == new.value.casefold():
        return  # repeated: the value of the old engram holds
    db.execute(
        "UPDATE engrams SET superseded_by = ? WHERE engram_id = ? AND NOT EXISTS"
        " (SELECT 1 FROM facts WHERE facts.number = engrams.number AND superseded_at IS NULL AND confirmed)",
        (new.engram_id, old.engram_id),
    )


def _fact(db: sqlite3.Connection, fact_id: int) -> StatedFact:
    return stored_fact(db.execute(f"{SELECT} WHERE fact_id = ?", (fact_id,)).fetchone())


def _spelt(db: sqlite3.Connection, user_id: str, slot: str) -> str:
    """A slot as it was first written."""
    sql = "SELECT slot FROM facts WHERE user_id = ? AND slot_key = ? ORDER BY fact_id LIMIT 1"
    known = db.execute(sql, (user_id, slot_key(slot))).fetchone()
    return str(known["slot"]) if known else " ".join(slot.split())


PENDING, CLASSIFIED, UNPARSED = 0, 1, 2  # the column `classified`


def pending(db: sqlite3.Connection, limit: int, *, newest_first: bool) -> list[Engram]:
    """Exchanges with the users' respondent that no model has looked at: the oldest, or those of the newest conversation
    in their order, then those of the one before."""
    sql = (
        "SELECT engrams.* FROM engrams JOIN"
        " (SELECT number, max(number) OVER (PARTITION BY session_id) AS latest"
        " FROM engrams INDEXED BY engrams_not_classified WHERE classified = 0 AND searchable)"
        " USING (number) ORDER BY latest DESC, number LIMIT ?"
    )
    if not newest_first:
        sql = "SELECT * FROM engrams WHERE classified = 0 AND searchable ORDER BY number LIMIT ?"
    return [stored_engram(row) for row in db.execute(sql, (limit,)).fetchall()]


def note(db: sqlite3.Connection, engram_id: str, classified: Classified) -> list[StatedFact]:
    """Store a model's findings on an exchange; returns the facts stated in it. Raises `NotOnRecord`.

    Earlier findings stay as they are.
    """
    row = db.execute("SELECT * FROM engrams WHERE engram_id = ?", (engram_id,)).fetchone()
    if row is None:
        raise NotOnRecord(f"there is no engram {engram_id}; it may have been deleted")
    if row["classified"] == PENDING:
        db.execute(
            "UPDATE engrams SET classified = ?, intent = ?, entities = ? WHERE engram_id = ?",
            (CLASSIFIED if classified.is_parsed else UNPARSED, classified.intent,
             json.dumps(classified.entities, ensure_ascii=False), engram_id),
        )  # fmt: skip
        settle(db, engram_id, classified.findings)  # until now it was unknown which holds
        apply(db, stored_engram(row), classified.findings)
    return of_engram(db, engram_id)


def apply(db: sqlite3.Connection, engram: Engram, findings: Iterable[FactFinding]) -> None:
    """Store the facts found in an exchange and their effects. Raises as `supersede` does."""
    for finding in findings:
        _apply(db, engram, finding)


def _apply(db: sqlite3.Connection, engram: Engram, finding: FactFinding) -> None:
    if finding.way is FactOperation.RETRACT:
        retract(db, engram, finding.slot, finding.value)
        return
    if finding.way is FactOperation.EXTEND:
        sql = (
            "UPDATE facts SET value = ? WHERE slot_key = ? AND value = ?"
            " AND number = (SELECT number FROM engrams WHERE engram_id = ?)"
        )
        extended = (masked(finding.value.strip()), slot_key(finding.slot), finding.extends, engram.engram_id)
        db.execute(sql, extended)
        return
    said = Statement(
        engram.engram_id, finding.slot, finding.value, engram.asked_at, Origin.USER, finding.certain,
        holds_from=finding.since, holds_until=finding.until,
    )  # fmt: skip
    if not finding.confirmed:
        holding = (fact.value.casefold() for fact in current_of_slot(db, engram.user_id, finding.slot))
        if finding.value.casefold() not in holding:
            note_unconfirmed(db, said)
        return
    store = {FactOperation.SUPERSEDE: supersede, FactOperation.ADD: add, FactOperation.CONTRADICT: contradict}[
        finding.way
    ]
    store(db, said)

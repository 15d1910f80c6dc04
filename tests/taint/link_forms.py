"""Generated texts that try to be a link to a host that nobody has given, in whatever way some reader takes for one."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

HOSTS = ("evil.com", "www.evil.com", "CANARY.evil.com", "www.canary.evil.example", "evil.example", "WWW.Evil.com",
         "a-b.evil.co.uk", "xn--evl-kna.com", "evil.com:8080", "203.0.113.9", "bücher.evil.com", "[2001:db8::77]",
         "canary.evil.pizza", "a.evil.photography")  # fmt: skip
SCHEMES = ("http://", "https://", "HTTPS://", "ftp://", "//", "www.", "", "http:", "https:/", "http:\\\\", "\\\\",
           "/\\", "\\/", "/\t/", "&bsol;\\", "&sol;/", "/\n\\", "mailto:x@",
           "xmpp:x@", "x@", "javascript:", "data:text/html,", "tel:", "ws://", "x.y+z@")  # fmt: skip
PATHS = ("/CANARY", "/?q=CANARY", "#CANARY", "?CANARY", "", "/a(CANARY)", "/a_CANARY_b", "/a*CANARY*", "/a&amp;CANARY",
         "/a;CANARY", "/~CANARY~", "/a,b.CANARY", "／CANARY", "\\CANARY", "/例え/CANARY", "/CANARY.png", "/a[CANARY]",
         "/%41CANARY", "/'CANARY'", "/x y")  # fmt: skip
MARKS = ("_", "__", "*", "**", "***", "*_", "_*", "__*", "~", "~~", "`", "``", '"', "'", "(", "[", "{", "|", "<", ">",
         "!", "\\", "-", "=", "+", ".", ",", ":", ";", "/", "#", "$", "^", "&", "%", "x", "ä", "例", "。", "「", "（",
         "\u200b", "\u00a0", "\u00ad", "\u2060", "\ufeff", "\u3000", "\t", " ", "\n", "\n\n", "➜", "😀", "_a_",
         "**b** ", "[x]", "<b>", "a:", "1.", "﹏", "‿", "＿", "＊")  # fmt: skip
CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">", "「": "」", "（": "）", "*_": "_*", "_*": "*_", "__*": "*__"}
WIDE = str.maketrans(":/.@\\?#wh", "：／．＠＼？＃ｗｈ")
PLACES = ("{}", "- {}", "> {}", "1. {}", "# {}", "{}\n===", "| a | b |\n|---|---|\n| x | {} |", "```\n{}\n```",
          "    {}", "See {} for more.", "a {} b", "x\n{}\ny", "> - {}", "<div>\n{}\n</div>", "<p>{}</p>", "`a` {} `b`",
          "` {} `", "[^1]: {}", "- [ ] {}", "| {} | b |\n|---|---|", "$ {} $", "~~~\n{}", "> ```\n{}\n", "<!-- {} -->",
          "[ {} ]", "![ {} ]", "**{}**", "_see {} now_", "请看{}好", "x{}", "{}x", "\\\n{}", "{}\\\n", "&lt;{}&gt;",
          "\\`{}`", "``{}`", "[a]: <{}>", "[a]: x '{}'")  # fmt: skip
LABELS = (
    "x",
    "a b",
    "",
    "a\nb",
    "`x`",
    "![y](z)",
    "[x]",
    "\\]",
    "\\[",
    "*x*",
    "x" * 60,
    "<b>",
    "https://page.example/a",
    "a [b] c",
    "例え",
    "`]",
    "a](b",
)
BEFORE = ("", "!", "\\", "!!", "[y]")
TAGS = (
    *("<img src={0}>", "<img src='{0}'>", '<a href="{0}">x</a>', "<a\nhref={0}>x</a>", "<IMG SRC={0} />"),
    *("<p style='background:url({0})'>x</p>", "<iframe src='{0}'></iframe>", "<video poster={0}>", "<base href={0}>"),
    *(
        '<img title="a\nb" src={0}>',
        "<svg/onload={0}>",
        "<form action={0}>",
        "<object data={0}>",
        "<img alt='>' src={0}>",
    ),
    *("<img alt='<' src={0}>", "<img src='{0}' alt=x>", "<img/src={0}>", '<img srcset="{0} 2x">', "<img src={0}\\x>"),
    *("<input type=image src={0}>", "<link rel=stylesheet href={0}>", '<a title="<" href="{0}">x</a>'),
    *("<img alt='>' src={0}>", "<a x=<b href={0}>y</a>", "<img src={0} ", "<?x {0}?>", "<!x {0}>", "<![CDATA[{0}]]>"),
)


def _given(rng: random.Random) -> str:
    return rng.choice(("", "", "https://given.example/a ", "[x](https://given.example/a) ", "https://given.example/a"))


def _address(rng: random.Random) -> str:
    text = rng.choice(SCHEMES) + rng.choice(HOSTS) + rng.choice(PATHS)
    while rng.random() < 0.35:
        text = rng.choice(CHANGES)(text, rng)
    return text


def _wide(text: str, rng: random.Random) -> str:
    return "".join(char.translate(WIDE) if rng.random() < 0.4 else char for char in text)


def _escape(text: str, rng: random.Random) -> str:
    return "".join(
        f"\\{char}" if not char.isalnum() and char.isascii() and rng.random() < 0.4 else char for char in text
    )


def _entity(text: str, rng: random.Random) -> str:
    forms: tuple[Callable[[str], str], ...] = (lambda char: f"&#{ord(char)};", lambda char: f"&#x{ord(char):x};")
    return "".join(rng.choice(forms)(char) if rng.random() < 0.2 else char for char in text)


def _mark(text: str, rng: random.Random) -> str:
    at = rng.randrange(len(text) + 1)
    return text[:at] + rng.choice(MARKS) + text[at:]


def _case(text: str, rng: random.Random) -> str:
    return "".join(rng.choice((char.upper(), char.lower())) for char in text)


CHANGES = (_wide, _escape, _entity, _mark, _case)


def _bare(rng: random.Random) -> str:
    text = _address(rng)
    for _ in range(rng.randrange(4)):
        mark = rng.choice(MARKS)
        text = mark + text + rng.choice((mark[::-1], CLOSING.get(mark, mark), "", rng.choice(MARKS)))
    return text


def _target(rng: random.Random) -> str:
    address = _address(rng)
    gap = rng.choice(("", "", "", " ", "\n", "\t", "\u00a0", " \n "))
    title = rng.choice(("", "", "", ' "t"', " 't'", " (t)", ' "a\nb"', '"t"', " t", ' "x" y', ' "\n\n"', "\n't'"))
    written = rng.choice(
        (address, address, f"<{address}>", f"<{address}", f"{address}>", f"<{address} a>", f"({address})")
    )
    return f"{gap}{written}{title}{gap}"


def _inline(rng: random.Random) -> str:
    text = f"{rng.choice(BEFORE)}[{rng.choice(LABELS)}]({_target(rng)})"
    return _mark(text, rng) if rng.random() < 0.4 else text


def _nested(rng: random.Random) -> str:
    return f"[a {_inline(rng)} b]({rng.choice((_target(rng), 'https://given.example/a', 'docs/a.md'))})"


def _reference(rng: random.Random) -> str:
    label = rng.choice(("r", "R", "a b", "a\nb", "\\]", "^1", "例", "`", "r" * 40))
    use = rng.choice((f"[x][{label}]", f"[{label}]", f"![{label}][]", f"[{label}][]"))
    indent = rng.choice(("", " ", "   ", "> ", "- ", "    ", "1. ", "> > "))
    colon = rng.choice((": ", ":", ":\n", ":\t", ":\n  ", "： ", " : "))
    definition = f"{indent}[{label}]{colon}{_target(rng).lstrip()}"
    parts = [use, definition]
    rng.shuffle(parts)
    text = rng.choice(("\n\n", "\n", "\n\n")).join(parts)
    return _mark(text, rng) if rng.random() < 0.3 else text


def _tag(rng: random.Random) -> str:
    text = rng.choice(TAGS).format(_address(rng)) if rng.random() < 0.6 else f"<{_address(rng)}>"
    return _mark(text, rng) if rng.random() < 0.4 else text


KINDS = (_bare, _bare, _bare, _inline, _inline, _nested, _reference, _tag)


def link_forms(number: int, seed: int) -> Iterator[str]:
    """So many of them, the same for the same seed."""
    rng = random.Random(seed)
    for _ in range(number):
        text = _given(rng) + rng.choice(PLACES).replace("{}", rng.choice(KINDS)(rng))
        yield text if rng.random() < 0.8 else f"{text}{rng.choice((' ', '', chr(10)))}{rng.choice(KINDS)(rng)}"

import pytest

from local.core.web_text import decode_page

_UMLAUTS = "Grüße aus Köln, schöne Straßen und viele Bäume. " * 20
_CHINESE = "<p>这是一个中文句子,今天天气很好。</p>\n" * 2_000
_RUSSIAN = "Съешь же ещё этих мягких французских булок, да выпей чаю. " * 20


@pytest.mark.parametrize(
    ("body", "declared", "text"),
    [
        (_UMLAUTS.encode(), None, _UMLAUTS),
        (_UMLAUTS.encode(), "iso-8859-1", _UMLAUTS),
        (_UMLAUTS.encode("latin-1"), "utf-8", _UMLAUTS),
        (_UMLAUTS.encode("cp1252"), "iso-8859-1", _UMLAUTS),
        (_RUSSIAN.encode("cp1251"), "utf-8", _RUSSIAN),
        (_RUSSIAN.encode("koi8-r"), "koi8-r", _RUSSIAN),
        (_RUSSIAN.encode("utf-16"), "utf-8", _RUSSIAN),
        (b"\xef\xbb\xbfplain", "utf-16", "plain"),
        (b"plain", "utf-16", "plain"),
        (b'<meta http-equiv=x content="text/html; charset=koi8-r">' + _RUSSIAN.encode("koi8-r"), None, None),
        (b"<?xml version='1.0' encoding='koi8-r'?>" + _RUSSIAN.encode("koi8-r"), None, None),
        ("“quoted”".encode("cp1252"), "latin-1", "“quoted”"),
        ("日本語".encode("iso2022_jp"), "iso-2022-jp", "日本語"),
        ("<p>Räksmörgås på ön är årets bästa.</p>".encode("cp1252"), None, "<p>Räksmörgås på ön är årets bästa.</p>"),
        ("Déjà vu : l’été « très » sec coûte 5 €.".encode("cp1252"), None, "Déjà vu : l’été « très » sec coûte 5 €."),
        ("Mühle".encode("cp1252"), None, "Mühle"),
        ("<p>Grüße aus dem naïven Café</p>".encode("cp1252"), None, "<p>Grüße aus dem naïven Café</p>"),
        ("Škoda žije v Praze, kůň běží.".encode("cp1250"), None, "Škoda žije v Praze, kůň běží."),
        (
            "日本語の文章です。今日は天気がいいですね。".encode("cp932"),
            None,
            "日本語の文章です。今日は天気がいいですね。",
        ),
        (_CHINESE.encode("gb18030"), None, _CHINESE),
        ("Zażółć gęślą jaźń, święta były śnieżne.".encode("cp1250"), None, "Zażółć gęślą jaźń, święta były śnieżne."),
        ("Příliš žluťoučký kůň úpěl ďábelské ódy.".encode("cp1250"), None, "Příliš žluťoučký kůň úpěl ďábelské ódy."),
        ("Ağaçların altında çok güzel şarkı söyledik.".encode("cp1254"), None, None),
        (_RUSSIAN.encode("cp1251"), None, _RUSSIAN),
    ],
)
def test_a_page_is_decoded_whatever_it_declares(body, declared, text):
    decoded = decode_page(body, declared)
    assert decoded == text if text else decoded.endswith((_RUSSIAN, "şarkı söyledik."))


@pytest.mark.parametrize(
    "declared", ["zlib", "hex", "punycode", "idna", "unicode_escape", "no-such", "", "\0", "x" * 999]
)
def test_a_charset_that_is_none_is_ignored(declared):
    assert decode_page("Zoë".encode() * 50, declared) == "Zoë" * 50
    assert decode_page(b"plain \\u0041", declared) == "plain \\u0041"


def test_a_few_broken_bytes_do_not_change_the_charset_that_was_declared():
    broken = _UMLAUTS.encode() + b"\xff"
    assert decode_page(broken, "utf-8") == _UMLAUTS + "\ufffd"


def test_noise_is_decoded_to_something():
    assert decode_page(bytes(range(1, 256)) * 4, "utf-8")

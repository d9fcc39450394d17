"""An address is told by a domain that exists, in whatever marks or words it is written."""

import re

import pytest

from gateway.content.emails import EMAIL_SIGNS, find_emails

FORMS = (sign.removeprefix("(?i)") for sign in EMAIL_SIGNS)
SIGN = re.compile("|".join(f"(?:{form})" for form in FORMS), re.IGNORECASE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a@b.com, x@W.transpose, icon@2x.png, c [at] d [dot] org, @dataclass",
         ["a@b.com", "c [at] d [dot] org"]),
        ("a [at] b [dot] de . Thanks", ["a [at] b [dot] de"]), ("a@b.de . Thanks", ["a@b.de"]),
        ("a @ b . de", ["a @ b . de"]),
        ("_a@b.de_ and", ["_a@b.de"]), ("a@b.de_c", []),
        ("\u90ae\u7bb1a@b.com\u8c22\u8c22", ["\u90ae\u7bb1a@b.com"]), ("a@b.com\u00fc", []),
        ("e-mail jane at example dot org", ["jane at example dot org"]),
        ("jane dot doe at example dot org", ["jane dot doe at example dot org"]),
        ("jane klammeraffe example punkt org", ["jane klammeraffe example punkt org"]),
        ("jane :at: example :dot: org", ["jane :at: example :dot: org"]),
        ("j,a,n,e,@,b,c,.,d,e", ["j,a,n,e,@,b,c,.,d,e"]),
        ("[j][o][@][b][.][d][e]", ["j][o][@][b][.][d][e"]),
        ("anna snabel-a gmail punktum com", ["anna snabel-a gmail punktum com"]),
        ("anna sobaka gmail tochka com", ["anna sobaka gmail tochka com"]),
        ("p_dubois**@**mail.ru", ["p_dubois**@**mail.ru"]),
        ('u = "tom"; d = "web.de"; mail = u + "@" + d', ['tom"; d = "web.de']),
        ('"@".join(["tom", "web.de"])', ['tom", "web.de']),
        ('name, host = line.split("@"), "a.txt"', []),
        ("look at example dot org", []), ("we met at noon dot xyzzy", []),
    ],
)  # fmt: skip
def test_an_address_is_found(text, expected) -> None:
    places = [match.end() for match in SIGN.finditer(text)]
    assert [text[span.start : span.end] for span in find_emails(text, places)] == expected

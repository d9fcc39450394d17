"""Values that a text calls secret, and words at random that nothing names."""

import re

import pytest

from gateway.content.secret_formats import (
    SECRET_FORMATS,
    bits_per_character,
    find_assigned,
    is_bare_secret,
)

RANDOM = "wJalrXUtn7EMIxK7MDENGzbPxRfiCYq9LmK3Tz0a"


@pytest.mark.parametrize("entry", SECRET_FORMATS, ids=lambda entry: f"{entry.issuer} {entry.sign}")
def test_a_sign_is_how_each_form_begins(entry) -> None:
    sign = re.compile(entry.sign)
    begins = re.sub(r"\\([.])", r"\1", entry.form.split("{")[0])
    assert sign.match(begins) or entry.form.startswith(entry.sign), begins


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("password=hunter2Xy9kq", "hunter2Xy9kq"), ("token = 'a8Fk20sLq9Zx'", "a8Fk20sLq9Zx"),
        ("max_token: max_tokens_per_minute_2", None), ("token = get_token(request)", None),
        ("password: correcthorse", None),
    ],
)  # fmt: skip
def test_a_value_is_secret_if_it_looks_so(text, found) -> None:
    sign = re.search(r"(?:password|token)[ ]?[:=]", text)
    spans = list(find_assigned(text, [sign.end()]))
    assert [text[start:end] for start, end in spans] == ([] if found is None else [found])


def test_a_password_in_an_address_is_found() -> None:
    text = "postgres://app:s3cr3tpass@db/app"
    ((start, end),) = find_assigned(text, [text.index("@") + 1])
    assert text[start:end] == "s3cr3tpass"


def test_a_digest_and_a_path_are_no_secret() -> None:
    assert is_bare_secret(RANDOM, "key ")
    assert not is_bare_secret(RANDOM, "sha512-")
    assert not is_bare_secret(RANDOM, "https://host/")
    assert not is_bare_secret("0123456789abcdef" * 4, "commit ")
    assert not is_bare_secret("getHTTPResponseCodeFromServerAndReturnIt2", "x = ")


def test_entropy_is_of_single_characters() -> None:
    assert bits_per_character("aaaa") == 0
    assert bits_per_character("abcd") == pytest.approx(2)

"""Text in another spelling is read, and each character knows where it was written."""

import base64

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from deploy.contentcases import EVASIONS
from gateway.content.encodings import (
    _text_of,
    escapes_in,
    is_file,
    read_run,
    reread,
    run_around,
)

ESCAPING = (
    "escaped", "hexadecimal escapes", "octal escapes", "long escapes", "entities",
    "hexadecimal entities", "open entities", "percent", "as in mail",
)  # fmt: skip
HEXADECIMAL = set("0123456789ABCDEFabcdef")


@pytest.mark.parametrize("name", ESCAPING)
def test_each_escape_is_read_and_placed(name) -> None:
    hidden = EVASIONS[name]("a@b.com 4111")
    text = f"<{hidden}>"
    reading = reread(text, escapes_in(text))
    assert reading is not None
    assert reading.text == "<a@b.com 4111>"
    assert reading.starts[0] == 0
    assert reading.ends[-1] == len(hidden) + 2
    assert all(start < end for start, end in zip(reading.starts, reading.ends, strict=True))


def test_a_text_without_escapes_is_none() -> None:
    assert reread("100 % & more", escapes_in("100 % & more")) is None


@given(st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=12))
def test_base64_and_hexadecimal_of_text_are_read(text) -> None:
    assert read_run(text.encode().hex()) in (text, None if text.isdigit() else text)
    assert read_run(base64.b64encode(text.encode()).decode()) in (text, None)


@given(st.binary(min_size=1, max_size=200), st.text(min_size=200), st.sampled_from((
    "utf-8", "utf-16", "utf-16-le", "utf-16-be",
)))  # fmt: skip
@example(b"@", "@" * 200, "utf-8")
def test_the_head_of_a_run_tells_no_other_than_the_whole(head, text, name) -> None:
    """Bytes before a text hide it from a reader of the head, and from one of all of it.

    Letters of one case alone may be base32 or hexadecimal, and are read as these.
    """
    for data in (head + text.encode(name, "replace"), text.encode(name, "replace")):
        run = base64.b64encode(data).decode()
        if not run.isupper() and not run.islower() and set(run) - HEXADECIMAL:
            assert read_run(run) == _text_of(data)


def test_bytes_that_are_no_text_are_none_and_a_file_if_long() -> None:
    data = base64.b64encode(bytes(range(256))).decode()
    assert read_run(data) is None
    assert is_file(data)
    assert not is_file(data[:40])


def test_a_run_ends_where_its_letters_end() -> None:
    text = "value=QUJDREVGR0hJSktMTU5PUA== (ok)"
    begin, end = run_around(text, text.index("==") + 1)
    assert text[begin:end] == "QUJDREVGR0hJSktMTU5PUA=="


@pytest.mark.parametrize("name", ["utf-16-le", "utf-16-be", "utf-16"])
def test_text_of_two_bytes_a_character_is_read(name) -> None:
    data = "my card is 4111111111111111 ok".encode(name)
    assert "4111111111111111" in (read_run(base64.b64encode(data).decode()) or "")
    assert "4111111111111111" in (read_run(data.hex()) or "")

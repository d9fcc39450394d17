"""Forms: what is read is what any other parser reads, and what two could read apart is refused."""

from email.parser import BytesParser
from email.policy import HTTP

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import RequestError
from gateway.http.forms import PARTS_LIMIT, open_form

KIND = "multipart/form-data; boundary=xYz"
FIELD = b'--xYz\r\nContent-Disposition: form-data; name="%b"\r\n\r\n%b\r\n'
FILE = (
    b'--xYz\r\nContent-Disposition: form-data; name="file"; filename="a;b\\".wav"\r\n'
    b"Content-Type: audio/wav\r\n\r\n%b\r\n"
)
END = b"--xYz--\r\n"


def form(*parts: bytes) -> bytes:
    return b"".join(parts) + END


def by_the_book(text: bytes, kind: str) -> dict[str, list[bytes]]:
    """The standard library's own reading."""
    message = BytesParser(policy=HTTP).parsebytes(f"content-type: {kind}\r\n\r\n".encode() + text)
    found: dict[str, list[bytes]] = {}
    for part in message.iter_parts():
        name = part.get_param("name", header="content-disposition")
        found.setdefault(name, []).append(part.get_payload(decode=True))
    return found


def test_fields_and_the_file_are_found() -> None:
    text = form(FIELD % (b"model", b"m"), FILE % b"RIFF\r\n\r\n--xY", FIELD % (b"empty", b""))
    found = open_form(text, KIND)
    assert (found.field("model"), found.field("empty"), found.field("none")) == ("m", None, None)
    assert found.file() == b"RIFF\r\n\r\n--xY"
    assert found.parts["file"][0].is_file
    assert found.content_type == 'multipart/form-data; boundary="xYz"'


def test_only_the_model_changes_and_what_is_denied_goes() -> None:
    parts = [FIELD % (b"priority", b"9"), FILE % b"\0\xff", FIELD % (b"model", b"ours")]
    tail = [FIELD % (b"odd", b" x "), FIELD % (b"include[]", b"a"), FIELD % (b"include[]", b"b")]
    found = open_form(form(*parts, *tail), KIND).body_for("theirs")
    assert found == form(parts[1], FIELD % (b"model", b"theirs"), *tail)
    assert by_the_book(found, KIND)["include[]"] == [b"a", b"b"]


def test_what_is_denied_goes_with_its_members() -> None:
    kept = [FIELD % (b"model", b"m"), FIELD % (b"a[b]", b"1"), FIELD % (b"a[c][]", b"2")]
    found = open_form(form(FIELD % (b"priority[x]", b"9"), *kept), KIND)
    assert (found.body_for("m"), found.ignored()) == (form(*kept), ("priority",))
    for name in (b"a[b", b"a[b]c", b"a[][b]", b"a[b][c]", b"[b]", b"a[%s]" % (b"b" * 65)):
        with pytest.raises(RequestError, match="no plain name"):
            open_form(form(FIELD % (name, b"1")), KIND)


def test_a_quoted_boundary_and_further_parameters() -> None:
    text = form(FIELD % (b"a", b"1")).replace(b"xYz", b"x y:z")
    found = open_form(text, 'Multipart/Form-Data; charset=utf-8; boundary="x y:z"')
    assert found.field("a") == "1"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "does not begin with its boundary"),
        (b"preamble\r\n" + END, "does not begin with its boundary"),
        (FIELD % (b"a", b"1"), "last boundary is missing"),
        (form(FIELD % (b"a", b"1")) + b"more", "it has text after its last boundary"),
        (form(FIELD % (b"a", b"x--xYz--y")), "a part contains a boundary"),
        (form(FIELD % (b"a", b"x\n--xYz\r\n\r\n")), "a part contains a boundary"),
        (form(b"--xYz\r\nno head\r\n"), "no head"),
        (form(b"--xYz\r\n\r\nvalue\r\n"), "no plain `content-disposition"),
        (form(b"--xYz\r\nX: " + b"y" * 5000 + b"\r\n\r\nv\r\n"), "too long"),
        (form(b"--xYz\r\nContent-Disposition: attachment\r\n\r\nv\r\n"), "no plain `content"),
        (form(FIELD % (b"mo\\del", b"1")), "no plain name"),
        (form(FIELD % (b'a"; name="model', b"1")), "cannot be read"),
        (form((FIELD % (b"a", b"1")).replace(b'name="a"', b"name*=utf-8''model")), "no plain name"),
        (
            form(
                (FIELD % (b"a", b"1")).replace(b"\r\n\r\n", b"\r\n content-disposition: x\r\n\r\n")
            ),
            "no plain `content-disposition",
        ),
        (form(*[FIELD % (b"f%d" % n, b"") for n in range(PARTS_LIMIT + 1)]), "more than 64 parts"),
        (form(FIELD % (b"model", b"a"), FIELD % (b"model", b"b")), "`model` occurs twice"),
        (form(FIELD % (b"prompt", b"p" * 70_000)), "`prompt` is longer"),
    ],
)
def test_what_could_be_read_in_two_ways_is_refused(text: bytes, words: str) -> None:
    with pytest.raises(RequestError, match=words.replace("(", r"\(")):
        open_form(text, KIND)


@pytest.mark.parametrize(
    "kind",
    [
        "", "application/json", "multipart/form-data", "multipart/mixed; boundary=a",
        "multipart/form-data; boundary=", 'multipart/form-data; boundary="a\r\nx: y"',
        "multipart/form-data; boundary=" + "a" * 71, "multipart/form-data; boundary=a%b",
    ],
)  # fmt: skip
def test_a_type_without_a_proper_boundary_is_refused(kind: str) -> None:
    with pytest.raises(RequestError, match="multipart/form-data; boundary="):
        open_form(form(), kind)


def test_a_field_that_is_no_text_is_named() -> None:
    with pytest.raises(RequestError, match="`model` is not UTF-8"):
        open_form(form(FIELD % (b"model", b"\xff")), KIND).field("model")


@given(
    st.dictionaries(
        st.from_regex(r"[a-z_]{1,12}", fullmatch=True),
        st.binary(max_size=200).filter(lambda value: b"--xYz" not in value),
        min_size=1,
        max_size=6,
    )
)
def test_what_is_accepted_is_read_as_the_standard_library_reads_it(fields) -> None:
    text = form(*[FIELD % (name.encode(), value) for name, value in fields.items()])
    found = open_form(text, KIND)
    assert {
        name: [text[p.start : p.end] for p in parts] for name, parts in found.parts.items()
    } == {name: [value] for name, value in fields.items()}
    assert set(by_the_book(text, KIND)) == set(fields)

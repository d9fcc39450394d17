"""Forms in any pieces give the same events; what is no form is refused."""

import random
import sys

import httpx
import pytest

from gateway.batches.multipart import (
    FIELD_LIMIT,
    FileBegins,
    FileData,
    FileEnds,
    FormError,
    FormTextField,
    MultipartParser,
    boundary_of,
)

CONTENT = b'{"a": 1}\r\n--not the boundary\r\n\r\n--\r\n' + bytes(range(256)) * 9


def sent(content: bytes = CONTENT, **fields: str) -> tuple[str, bytes]:
    """What httpx makes of it: (content type, body)."""
    request = httpx.Request(
        "POST", "http://x/", data=fields, files={"file": ("in put.jsonl", content)}
    )
    return request.headers["content-type"], request.read()


def events(body: bytes, boundary: bytes, cuts: list[int]) -> tuple[list, bool]:
    form, found, last = MultipartParser(boundary), [], 0
    for cut in [*cuts, len(body)]:
        found += form.feed(body[last:cut])
        last = cut
    return found, form.ended


def joined(found: list) -> tuple[list, bytes]:
    """Everything but the data, and the data in one piece."""
    rest = [event for event in found if not isinstance(event, FileData)]
    return rest, b"".join(event.data for event in found if isinstance(event, FileData))


@pytest.mark.parametrize("seed", range(40))
def test_pieces_do_not_matter(seed: int) -> None:
    kind, body = sent(purpose="batch", note="ä ö")
    rng = random.Random(seed)
    cuts = sorted(rng.sample(range(len(body)), rng.randrange(1, 60)))
    found, ended = events(body, boundary_of(kind), cuts if seed else list(range(1, len(body))))
    named = [
        FormTextField("purpose", "batch"),
        FormTextField("note", "ä ö"),
        FileBegins("file", "in put.jsonl"),
    ]
    assert joined(found) == ([*named, FileEnds("file")], CONTENT)
    assert ended


@pytest.mark.parametrize("content", [b"", b"\r\n", b"\r", b"--", b"\r\n--"])
def test_short_files_are_whole(content: bytes) -> None:
    kind, body = sent(content)
    for cut in range(1, len(body)):
        found, ended = events(body, boundary_of(kind), [cut])
        assert joined(found) == ([FileBegins("file", "in put.jsonl"), FileEnds("file")], content)
        assert ended


def test_data_is_told_before_it_is_whole() -> None:
    kind, body = sent(b"x" * 10_000)
    form = MultipartParser(boundary_of(kind))
    early = list(form.feed(body[:5_000]))
    assert len(joined(early)[1]) > 4_000
    assert not form.ended


@pytest.mark.parametrize(
    "kind", ["application/json", "multipart/form-data", "multipart/form-data; boundary=", ""]
)
def test_what_is_no_form_is_refused(kind: str) -> None:
    with pytest.raises(FormError):
        boundary_of(kind)


@pytest.mark.parametrize(
    "body",
    [
        b"x" * 9_000,
        b"--b\r\n" + b"x" * 9_000,
        b"--bx\r\n\r\n\r\n--b--",
        b"--b\r\ncontent-type: text/plain\r\n\r\nhi\r\n--b--",
        b'--b\r\ncontent-disposition: form-data; name="a"\r\n\r\n' + b"x" * (FIELD_LIMIT + 99),
        b'--b\r\ncontent-disposition: form-data; name="a"\r\n\r\n\xff\r\n--b--',
        b'--b\r\ncontent-disposition: form-data; name="a"\r\n\r\n1\r\n' * 40,
    ],
)
def test_faults_are_told(body: bytes) -> None:
    with pytest.raises(FormError):
        list(MultipartParser(b"b").feed(body))


def test_a_form_that_is_cut_has_not_ended() -> None:
    kind, body = sent()
    _, ended = events(body[:-4], boundary_of(kind), [])
    assert not ended


@pytest.mark.parametrize(
    "said",
    [
        'form-data; name="file"; filename="in put.jsonl"',
        "form-data; name=file; filename=in put.jsonl",
        'FORM-DATA ;filename="in put.jsonl" ; name="file"',
        'form-data; name="file"; filename="x"; filename*=UTF-8\'\'in%20put.jsonl',
        "form-data; name=\"file\"; filename*=utf-8'en'in%20put.jsonl",
    ],
)
def test_a_part_is_named_in_any_of_the_usual_ways(said: str) -> None:
    head = f"--b\r\nContent-Type: text/plain\r\ncontent-disposition: {said}\r\n\r\n".encode()
    found, ended = events(head + b"x\r\n--b--", b"b", [])
    assert (found[0], ended) == (FileBegins("file", "in put.jsonl"), True)


@pytest.mark.parametrize(
    ("said", "name"),
    [(r'"a\"b\\c.jsonl"', 'a"b\\c.jsonl'), (r'"C:\x.jsonl"', r"C:\x.jsonl"), ('""', ""), ("", "")],
)
def test_a_quoted_name_is_told_as_it_is_meant(said: str, name: str) -> None:
    head = f'--b\r\ncontent-disposition: form-data; name="file"; filename={said}\r\n\r\n'.encode()
    found, _ = events(head + b"x\r\n--b--", b"b", [])
    assert found[0] == FileBegins("file", name)


@pytest.mark.parametrize(
    ("kind", "boundary"),
    [
        ("multipart/form-data; boundary=abc", b"abc"),
        ('Multipart/Form-Data ; charset=utf-8; BOUNDARY="a b:c"; x=y', b"a b:c"),
        ("multipart/form-data; boundary=abc; boundary=def", b"abc"),
    ],
)
def test_a_boundary_is_read_in_any_of_the_usual_ways(kind: str, boundary: bytes) -> None:
    assert boundary_of(kind) == boundary


def test_a_head_made_to_be_read_for_long_is_not() -> None:
    """`email.message` counts the quotes before each semicolon: 2 s for 64 KB of them.

    Counted in steps of the interpreter, because a clock tells more of the machine.
    """
    kind = 'multipart/form-data; boundary="' + ";" * 60_000
    head = b'--b\r\ncontent-disposition: form-data; name="' + b";" * (8 * 1024 - 60)

    def refused() -> None:
        with pytest.raises(FormError):
            boundary_of(kind)
        with pytest.raises(FormError):
            list(MultipartParser(b"b").feed(head + b"\r\n\r\n"))

    assert steps(refused) < 1_000


def steps(work) -> int:
    """Lines of Python that it runs through."""
    count = 0

    def traced(*_):
        nonlocal count
        count += 1
        return traced

    before = sys.gettrace()
    sys.settrace(traced)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("blank", [b" ", b"\t\n"])
def test_blanks_without_an_end_behind_a_boundary_are_not_kept(blank: bytes) -> None:
    body = b"--b" + blank * 4096
    with pytest.raises(FormError):
        events(body, b"b", list(range(256, len(body), 256)))

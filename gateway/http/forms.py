"""Multipart form request: split into parts by position, with its bytes kept.

Audio files arrive as `multipart/form-data`. The gateway reads the small fields, sets the target's
model name, and removes the fields in `member_rules.DENIED`; all other bytes are forwarded. Parsing
is strict: forms that the target's parser could split differently are rejected.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from gateway.errors import RequestError
from gateway.http.member_rules import DENIED

PARTS_LIMIT = 64
HEAD_LIMIT_BYTES = 4096
FIELD_LIMIT_BYTES = 64 * 1024  # of a field that is not a file
FILE = "file"
_TYPE = re.compile(
    r'multipart/form-data\s*;(?:[^"]*;)?\s*boundary=(?:"([^"]{1,70})"|([^\s";]{1,70}))\s*(?:;[^"]*)?',
    re.IGNORECASE,
)
_BOUNDARY = re.compile(r"[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]")
_DISPOSITION = re.compile(rb"content-disposition[ \t]*:[ \t]*form-data[ \t]*(;.*)", re.IGNORECASE)
_PARAMETER = re.compile(
    rb';[ \t]*([A-Za-z*]+)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^\s";]+))[ \t]*'
)
# `chunking_strategy[type]` is how OpenAI's clients send a member of an object in a form.
NAMES = r"[A-Za-z0-9_.-]{1,64}(?:\[[A-Za-z0-9_.-]{1,64}\])?(?:\[\])?"
_NAME = re.compile(NAMES)
FLAGS: Final = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True, slots=True)
class FormPart:
    """One part of a form by byte positions: value from `start` to `end`, delimiter at `opens`."""

    name: str
    is_file: bool
    opens: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class FormRequest:
    """A parsed form: `text` holds all parts, `content_type` is sent to the target."""

    text: bytes
    content_type: str
    parts: Mapping[str, tuple[FormPart, ...]]

    def field(self, name: str) -> str | None:
        """Return a text field; `None` if it is absent or empty.

        Raises `RequestError` if the value is not UTF-8.
        """
        found = self.parts.get(name)
        if not found:
            return None
        value = self.text[found[0].start : found[0].end]
        try:
            return value.decode() or None
        except UnicodeDecodeError as error:
            raise RequestError("bad_request", f"`{name}` is not UTF-8.", param=name) from error

    def flag(self, name: str) -> bool:
        """Return a boolean field, False if absent. Raises `RequestError` for other values."""
        value = self.field(name)
        if value is not None and value.lower() not in FLAGS:
            raise RequestError("bad_request", f"`{name}` must be `true` or `false`.", param=name)
        return value is not None and FLAGS[value.lower()]

    def bytes_beside(self, names: Collection[str]) -> int:
        """Return the bytes of all parts with other names, all of which a model may read."""
        return sum(
            part.end - part.start
            for name, group in self.parts.items()
            if name not in names
            for part in group
        )

    def file(self) -> bytes | None:
        found = self.parts.get(FILE)
        return None if not found else self.text[found[0].start : found[0].end]

    def ignored(self) -> tuple[str, ...]:
        """Return the names of fields that no target gets."""
        return tuple(sorted(DENIED.intersection(map(field_of, self.parts))))

    def body_for(self, model: str) -> bytes:
        """Return the form with the target's model and without denied fields."""
        cuts: list[tuple[int, int, bytes]] = []
        for name, group in self.parts.items():
            for part in group:
                if name == "model":
                    cuts.append((part.start, part.end, model.encode()))
                elif field_of(name) in DENIED:
                    cuts.append((part.opens, part.end + 2, b""))
        pieces, at = [], 0
        for start, end, instead in sorted(cuts):
            pieces += [self.text[at:start], instead]
            at = end
        return b"".join([*pieces, self.text[at:]])


def field_of(name: str) -> str:
    """Return the field of a part: `include` of `include[]`, `a` of `a[b]`."""
    return name.partition("[")[0]


def open_form(text: bytes, content_type: str) -> FormRequest:
    """Split a body into its parts.

    Raises `RequestError` for a malformed form, or one that parsers could split differently.
    """
    boundary = _boundary(content_type)
    parts: dict[str, tuple[FormPart, ...]] = {}
    for part in _parts(text, b"--" + boundary.encode()):
        if part.name in parts and not part.name.endswith("[]"):
            raise RequestError(
                "duplicate_key",
                f"`{part.name}` occurs twice in the form. Send it once.",
                param=part.name,
            )
        if not part.is_file and part.end - part.start > FIELD_LIMIT_BYTES:
            words = f"`{part.name}` is longer than {FIELD_LIMIT_BYTES} bytes."
            raise RequestError("bad_request", words, param=part.name)
        parts[part.name] = (*parts.get(part.name, ()), part)
    return FormRequest(text, f'multipart/form-data; boundary="{boundary}"', parts)


def with_model_field(form: FormRequest, model: str) -> bytes:
    """Return the form's bytes with this model in its field, added if missing."""
    found = form.parts.get("model")
    if found:
        return form.text[: found[0].start] + model.encode() + form.text[found[0].end :]
    delimiter = b"--" + _boundary(form.content_type).encode()
    head = b'\r\ncontent-disposition: form-data; name="model"\r\n\r\n'
    return b"".join((delimiter, head, model.encode(), b"\r\n", form.text))


def _boundary(content_type: str) -> str:
    found = _TYPE.fullmatch(content_type.strip())
    boundary = "" if found is None else found[1] or found[2]
    if not _BOUNDARY.fullmatch(boundary):
        raise RequestError(
            "media_type",
            "Send the form as `multipart/form-data; boundary=...`, as HTTP clients do by "
            "themselves when they are given a file.",
        )
    return boundary


def _parts(text: bytes, delimiter: bytes) -> Iterator[FormPart]:
    """Yield the parts; a delimiter inside content is rejected, because parsers differ there."""
    at = text.find(delimiter)
    if at != 0:
        raise _malformed_error("it does not begin with its boundary")
    for _ in range(PARTS_LIMIT):
        head = at + len(delimiter)
        if text[head : head + 2] == b"--":
            if text[head + 2 :] not in (b"", b"\r\n"):
                raise _malformed_error("it has text after its last boundary")
            return
        following = text.find(delimiter, head)
        if following < 0:
            raise _malformed_error("its last boundary is missing")
        if text[head : head + 2] != b"\r\n" or text[following - 2 : following] != b"\r\n":
            raise _malformed_error("a part contains a boundary")
        start = text.find(b"\r\n\r\n", head, min(following, head + HEAD_LIMIT_BYTES)) + 4
        if start < head + 4 or start > following - 2:
            raise _malformed_error("a part has no headers, or headers that are too long")
        name, is_file = _part_name(text[head + 2 : start - 4])
        yield FormPart(name, is_file, at, start, following - 2)
        at = following
    raise _malformed_error(f"it has more than {PARTS_LIMIT} parts")


def _part_name(head: bytes) -> tuple[str, bool]:
    """Return a part's name and whether it is a file, from its `content-disposition`."""
    found = [match for line in head.split(b"\r\n") if (match := _DISPOSITION.fullmatch(line))]
    lines = head.lower().count(b"content-disposition")
    if len(found) != 1 or lines != 1:
        raise _malformed_error("a part has no plain `content-disposition: form-data`")
    given: dict[bytes, bytes] = {}
    rest = found[0][1]
    while rest:
        match = _PARAMETER.match(rest)
        if match is None or match[1].lower() in given:
            raise _malformed_error("a part's `content-disposition` cannot be read")
        given[match[1].lower()] = match[3] if match[2] is None else match[2]
        rest = rest[match.end() :]
    name = given.get(b"name", b"").decode("latin-1")
    if not _NAME.fullmatch(name) or b"name*" in given:
        raise _malformed_error("a part has no plain name")
    return name, b"filename" in given or b"filename*" in given


def _malformed_error(why: str) -> RequestError:
    return RequestError("bad_request", f"The form is malformed: {why}.")

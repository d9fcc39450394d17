"""Incremental parser of multipart forms: text fields as a whole, a file in pieces.

No I/O: bytes in, events out, for any split of the input. Limits in this module bound its memory.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

HEAD_LIMIT = 8 * 1024  # bytes of one part's headers
FIELD_LIMIT = 8 * 1024  # bytes of one text field
PARTS_LIMIT = 32
LINE_LIMIT = 1024  # bytes of white space after a boundary
PARAMETERS_LIMIT = 16  # maximum parameters read of one header

_BOUNDARY = re.compile(r"[0-9A-Za-z'()+_,./:=? -]{1,70}")
# One pass over the text: `email.message` takes quadratic time in the number of semicolons,
# so that a head of 64 KB would block a worker for seconds.
_PARAMETER = re.compile(r';\s*([^\s=;"]+)\s*=\s*(?:"((?:[^"\\]|\\.)*+)"|([^;"]*))\s*')
_QUOTED = re.compile(r'\\([\\"])')


class FormError(ValueError):
    """Error: the body is not valid form data, or exceeds a limit."""


@dataclass(frozen=True, slots=True)
class FormTextField:
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class FileBegins:
    name: str
    filename: str


@dataclass(frozen=True, slots=True)
class FileData:
    data: bytes


@dataclass(frozen=True, slots=True)
class FileEnds:
    name: str


Event = FormTextField | FileBegins | FileData | FileEnds


def boundary_of(content_type: str) -> bytes:
    """Return the boundary in a `multipart/form-data` header. Raises `FormError`."""
    kind, _, _ = content_type.partition(";")
    boundary = _parameters(content_type[len(kind) :]).get("boundary", "")
    if kind.strip().lower() != "multipart/form-data" or not _BOUNDARY.fullmatch(boundary):
        raise FormError("send `multipart/form-data` with a boundary")
    return boundary.encode()


class MultipartParser:
    """Parser of one request's form; `ended` is set after its last boundary."""

    def __init__(self, boundary: bytes) -> None:
        self.ended = False
        self._mark = b"\r\n--" + boundary
        self._held = b"\r\n"  # so that the first boundary matches, too
        self._step = self._preamble
        self._name = ""
        self._is_file = False
        self._value = b""
        self._parts = 0

    def feed(self, data: bytes) -> Iterator[Event]:
        """Yield the events that these bytes complete. Raises `FormError`."""
        self._held += data
        while not self.ended:
            found = self._step()
            if found is None:
                return
            yield from found

    def _preamble(self) -> list[Event] | None:
        """Skip the bytes up to the first boundary."""
        place = self._held.find(self._mark)
        if place < 0:
            if len(self._held) > HEAD_LIMIT:
                raise FormError("the form does not begin with its boundary")
            return None
        self._held = self._held[place + len(self._mark) :]
        self._step = self._after_mark
        return []

    def _after_mark(self) -> list[Event] | None:
        if len(self._held) < 2:
            return None
        if self._held[:2] == b"--":
            self.ended = True
            return []
        line, found, rest = self._held.partition(b"\r\n")
        if line.strip() or len(line) > LINE_LIMIT:
            raise FormError("a boundary is followed by other text")
        if not found:
            return None
        self._held, self._step = b"\r\n" + rest, self._head  # the part may have no headers
        return []

    def _head(self) -> list[Event] | None:
        place = self._held.find(b"\r\n\r\n")
        if (place if place >= 0 else len(self._held)) > HEAD_LIMIT:
            raise FormError(f"a part's headers are longer than {HEAD_LIMIT} bytes")
        if place < 0:
            return None
        self._parts += 1
        if self._parts > PARTS_LIMIT:
            raise FormError(f"the form has more than {PARTS_LIMIT} parts")
        name, filename = _part_names(self._held[2:place])
        self._held = b"\r\n" + self._held[place + 4 :]  # so that an empty part's boundary matches
        self._name, self._is_file, self._value = name, filename is not None, b""
        self._step = self._first
        return [] if filename is None else [FileBegins(name, filename)]

    def _first(self) -> list[Event] | None:
        """Skip the line break that was put before a part's content, unless a boundary follows."""
        if len(self._held) < len(self._mark) and self._mark.startswith(self._held):
            return None
        if not self._held.startswith(self._mark):
            self._held = self._held[2:]
        self._step = self._content
        return []

    def _content(self) -> list[Event] | None:
        place = self._held.find(self._mark)
        if place < 0:
            kept = len(self._mark) - 1  # may be the start of a boundary
            part, self._held = self._held[:-kept], self._held[-kept:]
            return self._emit_part(part) if part else None
        part, self._held = self._held[:place], self._held[place + len(self._mark) :]
        self._step = self._after_mark
        found = self._emit_part(part)
        if self._is_file:
            return [*found, FileEnds(self._name)]
        try:
            return [FormTextField(self._name, self._value.decode())]
        except UnicodeDecodeError as error:
            raise FormError(f"the field `{self._name}` is not UTF-8") from error

    def _emit_part(self, part: bytes) -> list[Event]:
        if self._is_file:
            return [FileData(part)] if part else []
        self._value += part
        if len(self._value) > FIELD_LIMIT:
            raise FormError(f"the field `{self._name}` is longer than {FIELD_LIMIT} bytes")
        return []


def _part_names(head: bytes) -> tuple[str, str | None]:
    """Return (field, filename) of a part; a filename makes it a file."""
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-disposition":
            _, semicolon, rest = value.decode("utf-8", "replace").partition(";")
            found = _parameters(semicolon + rest)
            if found.get("name"):
                return found["name"], _filename(found)
    raise FormError("a part has no name")


def _filename(found: dict[str, str]) -> str | None:
    """Return a file's name, plain or in RFC 5987's form (`UTF-8''na%C3%AFve.jsonl`)."""
    encoded = found.get("filename*", "").split("'", 2)
    if len(encoded) == 3:
        return unquote(encoded[2], errors="replace")  # other charsets are obsolete
    return found.get("filename")


def _parameters(text: str) -> dict[str, str]:
    """Return the parameters of `; name=value; ...` in lower case, up to the first invalid one.

    Of a repeated name, the first value counts.
    """
    found: dict[str, str] = {}
    at = 0
    for _ in range(PARAMETERS_LIMIT):
        match = _PARAMETER.match(text, at)
        if match is None:
            break
        quoted, plain = match[2], match[3]
        value = plain.strip() if quoted is None else _QUOTED.sub(r"\1", quoted)
        found.setdefault(match[1].lower(), value)
        at = match.end()
    return found

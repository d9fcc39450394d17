"""Parser of a batch's input lines: each becomes a line for the runner, or OpenAI's error.

No I/O. The request itself is checked when the line is sent, as for any request. An invalid request
then fails alone, and its batch continues.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from gateway.errors import RequestError
from gateway.http.body import refuse_repeats
from gateway.kinds import BATCH_PATHS
from gateway.kinds.text_members import MODEL_LIMIT
from ledger.batches.lines import NewLine

ENDPOINTS = (*BATCH_PATHS, "/v1/responses", "/v1/messages")
# Each endpoint by its spellings; Azure's documents write them without `/v1`.
SPELLINGS: Final = {said: path for path in ENDPOINTS for said in (path, path.removeprefix("/v1"))}
CUSTOM_ID_LIMIT = 256  # characters
TOLD = 100  # characters of a line's value quoted in its error


@dataclass(frozen=True, slots=True)
class InputFault:
    """Entry of a failed batch's `errors`; `line` counts from 1, `None` means the whole file."""

    code: str
    message: str
    line: int | None = None
    param: str | None = None

    def document(self) -> dict[str, Any]:
        return {
            "code": self.code, "line": self.line, "message": self.message, "param": self.param,
        }  # fmt: skip


class _LineFault(Exception):
    def __init__(self, code: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.param = code, message, param


_read = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_text = msgspec.json.Decoder(str).decode


class InputLines:
    """Parser of one file's lines in order; rejects a repeated `custom_id`."""

    def __init__(self, endpoint: str, known: Callable[[str], bool]) -> None:
        """`known` returns whether a model of this name is served."""
        self._endpoint = endpoint
        self._known = known
        self._seen: set[str] = set()

    def read(self, text: bytes, number: int) -> NewLine | InputFault | None:
        """Parse one line; return `None` for a blank line."""
        if not text.strip():
            return None
        try:
            return self._line(text, number)
        except _LineFault as error:
            return InputFault(error.code, error.message, number, error.param)

    def _line(self, text: bytes, number: int) -> NewLine:
        members = _object(text, "The line", None)
        custom_id = self._custom_id(members)
        method = _member(members, "method")
        if method != "POST":
            raise _LineFault(
                "invalid_method", f"`method` must be `POST`, not `{_cut(method)}`.", "method"
            )
        url = _member(members, "url")
        if SPELLINGS.get(url) != self._endpoint:
            raise _LineFault(
                "invalid_url",
                f"`url` must be the batch's endpoint `{self._endpoint}`, not `{_cut(url)}`.",
                "url",
            )
        if "body" not in members:
            raise _LineFault("missing_required_parameter", "`body` is required.", "body")
        body = bytes(members["body"])
        model = self._model(_object(body, "`body`", "body"))
        return NewLine(number, custom_id, model, body)

    def _custom_id(self, members: dict[str, msgspec.Raw]) -> str:
        custom_id = _member(members, "custom_id")
        if not custom_id or len(custom_id) > CUSTOM_ID_LIMIT or "\0" in custom_id:
            raise _LineFault(
                "invalid_custom_id",
                f"`custom_id` must be 1 to {CUSTOM_ID_LIMIT} characters.",
                "custom_id",
            )
        if custom_id in self._seen:
            raise _LineFault(
                "duplicate_custom_id",
                f"The custom_id `{custom_id}` occurs on an earlier line too. Use each one once.",
                "custom_id",
            )
        self._seen.add(custom_id)
        return custom_id

    def _model(self, body: dict[str, msgspec.Raw]) -> str:
        model = _member(body, "model", "body.model")
        if len(model) > MODEL_LIMIT or not model.isprintable() or not self._known(model):
            message = f"The model `{_cut(model)}` does not exist."
            raise _LineFault("model_not_found", message, "body.model")
        if bytes(body.get("stream", b"false")) not in (b"false", b"null"):
            raise _LineFault(
                "unsupported_parameter",
                "`stream` has no meaning in a batch. Leave it out.",
                "body.stream",
            )
        return model


def _cut(said: str) -> str:
    return said if len(said) <= TOLD else said[:TOLD] + "..."


def _object(text: bytes, what: str, param: str | None) -> dict[str, msgspec.Raw]:
    try:
        text.decode()
        members = _read(text)
        refuse_repeats(text, members)
    except RequestError as error:
        words = f"{what} repeats a name: {error}"
        raise _LineFault(error.kind, words, error.param) from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _LineFault(
            "invalid_json_line", f"{what} is not a JSON object: {error}", param
        ) from None
    return members


def _member(members: dict[str, msgspec.Raw], name: str, param: str | None = None) -> str:
    if name not in members:
        raise _LineFault("missing_required_parameter", f"`{name}` is required.", param or name)
    try:
        return _text(members[name])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        message = f"`{name}` must be a string."
        raise _LineFault("invalid_type", message, param or name) from None

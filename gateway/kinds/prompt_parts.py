"""Parts of a conversation whose tokens do not follow from their bytes: sounds and files.

They are found in the encoded text: a member name is a string of its own, since quotes within a text
are escaped. JSON may write each letter of a name as an escape, with the same meaning to a target.
"""

import json
import re
from typing import Any, Final, NamedTuple

import msgspec

from gateway.http.body import holds

_ESCAPED: Final = b"\\u00"


class NamePattern:
    """A pattern that finds strings equal to one of some names, in any spelling.

    `hint` is a part of all the names, `of` the member whose value they are, `behind` a regular
    expression of what follows.
    """

    __slots__ = ("_hint", "_plain", "_spelled", "_spelling")

    def __init__(
        self, hint: str, names: tuple[str, ...], *, of: str = "", behind: str = ""
    ) -> None:
        member = rf'"{of}"\s*+:\s*+' if of else ""
        spelled_member = rf'"{_spelled(of)}"\s*+:\s*+' if of else ""
        plain, spelled = "|".join(map(re.escape, names)), "|".join(map(_spelled, names))
        self._hint = hint.encode()
        self._plain = re.compile(f'{member}"(?:{plain})"{behind}'.encode())
        self._spelling = f'{spelled_member}"(?:{spelled})"{behind}'.encode()
        self._spelled: re.Pattern[bytes] | None = None  # compiled if needed, which is rare

    def count(self, text: bytes) -> int:
        if holds(text, _ESCAPED):
            if self._spelled is None:
                self._spelled = re.compile(self._spelling)
            return len(self._spelled.findall(text))
        return len(self._plain.findall(text)) if holds(text, self._hint) else 0


def _spelled(name: str) -> str:
    return "".join(map(_letter, name))


def _letter(letter: str) -> str:
    hexadecimal = "".join(f"[{d}{d.upper()}]" if d.isalpha() else d for d in f"{ord(letter):02x}")
    return f"(?:{re.escape(letter)}|\\\\u00{hexadecimal})"


class PromptParts(NamedTuple):
    """A conversation's parts besides text: whether there may be sound, and the other counts.

    `files` and `pictures` are upper bounds; `pictures` are those in formats of other vendors than
    OpenAI.
    """

    sound: bool
    files: int
    pictures: int


_SOUND: Final = NamePattern("audio", ("input_audio", "audio_url"))
# An earlier spoken answer is in a conversation as `audio` with its id, and its duration is
# unknown; vLLM writes `null` there. Others send a sound of their own under that name.
_SAID: Final = NamePattern("audio", ("audio",), behind=r"\s*+:\s*+(?!null)")
_HEARD: Final = NamePattern("audio", ("audio",), of="type")
_GIVEN: Final = r"\s*+:\s*+(?!null|\"\"|\[\s*+\]|\{\s*+\})"
_FILES: Final = NamePattern(
    "file",
    ("file", "file_id", "file_ids", "file_url", "file_uri", "file_data", "fileData", "fileUri"),
    behind=_GIVEN,
)
_DOCUMENTS: Final = NamePattern("document", ("document_url",), behind=r"\s*+:")
# Films and files of any kind, in formats of other vendors; a document may have text. A list of
# pictures (Ollama's) may have any length.
_FILMS: Final = NamePattern('"', ("video", "media", "pdf"), of="type")
_FILM: Final = NamePattern("video", ("video", "video_url", "input_video"), behind=_GIVEN)
_INLINE: Final = NamePattern("inline", ("inlineData", "inline_data"), behind=_GIVEN)
_LISTED: Final = NamePattern("images", ("images",), behind=_GIVEN)
_BYTES: Final = NamePattern('"', ("bytes", "s3Location"), behind=_GIVEN)
_BARE: Final = NamePattern("document", ("document",), behind=_GIVEN)
_DOCUMENT: Final = NamePattern("document", ("document",), of="type")
_SOURCE: Final = NamePattern('"', ("url", "base64", "file"), of="type")
_PICTURES: Final = NamePattern("image", ("image", "image_base64", "image_file"), of="type")
# Formats of DashScope and Bedrock, without a type.
_PICTURE: Final = NamePattern("image", ("image",), behind=_GIVEN)
_PREFIX: Final = NamePattern("prefix", ("prefix",), behind=r"\s*+:\s*+true")


LONG_BYTES: Final = 512  # longer than each name in escapes
_FOLLOWS: Final = b" \t\r\n\v\f:"  # the first byte after a string that is a name
_CUT: Final = b"a long string"

NO_PARTS: Final = PromptParts(sound=False, files=0, pictures=0)


class _TextMessage(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    role: str
    content: str | None = None
    name: str | None = None


_decode_texts = msgspec.json.Decoder(list[_TextMessage]).decode


def roles_of_text(prompt: bytes) -> list[str] | None:
    """Return the roles of a conversation of plain text, the usual case; None for others.

    This takes a tenth of the time of searching for everything else that may be in it.
    """
    try:
        return [message.role for message in _decode_texts(prompt)]
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def find_parts(prompt: bytes) -> PromptParts:
    """Return a conversation's parts besides text; a file counts as sound, too.

    Arguments of tool calls are text to a target, also if they are sent as an object.
    """
    found = _count_parts(cut_long_strings(prompt))
    if found == NO_PARTS or not holds(prompt, b'"tool_'):
        return found
    called = _without_arguments(prompt)
    return found if called is None else _count_parts(cut_long_strings(called))


def cut_long_strings(text: bytes) -> bytes:
    """Return JSON with the same names and what follows them, but without long strings.

    A picture of 128 KB is one string, and searching it for each name takes 3 ms. A long piece
    between two quotes is no name, and starts with a colon or white space if it is a member's value.
    """
    if text.count(b'"') * LONG_BYTES > len(text):
        return text  # few strings are long
    return b'"'.join(
        piece if len(piece) <= LONG_BYTES or piece[:1] in _FOLLOWS else _CUT
        for piece in text.split(b'"')
    )


def _count_parts(prompt: bytes) -> PromptParts:
    files = sum(
        pattern.count(prompt)
        for pattern in (_FILES, _DOCUMENTS, _FILMS, _FILM, _INLINE, _LISTED, _SAID, _HEARD)
    )
    documents = _DOCUMENT.count(prompt)
    if documents and _SOURCE.count(prompt):
        files += documents
    documents = _BARE.count(prompt)
    if documents and _BYTES.count(prompt):
        files += documents
    sound = files > 0 or _SOUND.count(prompt) > 0
    pictures = max(_PICTURES.count(prompt), _PICTURE.count(prompt))
    return PromptParts(sound, files, pictures)


def _without_arguments(prompt: bytes) -> bytes | None:
    """Return the conversation without arguments of tool calls; None if it cannot be decoded."""
    try:
        messages = json.loads(prompt, object_pairs_hook=once)
        for message in messages:
            for call in message.get("tool_calls") or ():
                call["function"]["arguments"] = ""
            content = message.get("content")
            for part in content if isinstance(content, list) else ():
                if isinstance(part, dict) and part.get("type") == "tool_use":
                    part["input"] = ""
        return msgspec.json.encode(messages)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        return None


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object. Raises `ValueError` if a name repeats: which one counts is unknown."""
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError
    return made


def is_continued(prompt: bytes) -> bool:
    """Return whether the answer continues a message's text, which some vendors then repeat."""
    return _PREFIX.count(prompt) > 0

"""Contents of a chat completion, whole or in chunks, as content pieces for any dialect.

Reading is lenient: members of unexpected types are ignored, so that no answer is lost.
"""

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import msgspec

from backends.json_mending import mend_json
from ledger.cache_conventions import Convention
from ledger.journals.records import TokenCounts
from ledger.prices.rates import prompt_tokens
from ledger.usage import tokens_from_usage
from ledger.usage_figures import UsageContradiction, UsageError

INLINE = "data:"  # prefix of URLs that contain the data
Kind = Literal["text", "reasoning", "refusal", "call", "picture"]

_decode = msgspec.json.Decoder(dict[str, Any]).decode


class ContentPiece(NamedTuple):
    """A part of the answer. For a call, `text` is part of its arguments and `call` its number.

    For a picture, `text` is its address, which mostly holds the data.
    """

    kind: Kind
    text: str
    call: int = 0
    id: str = ""
    name: str = ""


def read_object(payload: bytes) -> dict[str, Any] | None:
    try:
        return _decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        mended = mend_json(payload)
        return None if mended is None else read_object(mended)


def first_choice(chunk: dict[str, Any]) -> dict[str, Any] | None:
    """Return the first choice of a chunk; dialects never ask for more than one."""
    choices = chunk.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return choices[0]
    return None


def pieces(said: Any) -> Iterator[ContentPiece]:
    """Yield the contents of a delta or a message, reasoning first.

    For sound without text, the transcript is the text.
    """
    if not isinstance(said, dict):
        return
    thought = _text(said.get("reasoning_content")) or _text(said.get("reasoning"))
    if thought:
        yield ContentPiece("reasoning", thought)
    content = said.get("content")
    if isinstance(content, list):
        yield from _parts(content)
    elif words := _text(content) or _transcript(said.get("audio")):
        yield ContentPiece("text", words)
    yield from _pictures(said.get("images"))
    if _text(said.get("refusal")):
        yield ContentPiece("refusal", _text(said["refusal"]))
    yield from _calls(said)


def _calls(said: dict[str, Any]) -> Iterator[ContentPiece]:
    calls, old = said.get("tool_calls"), said.get("function_call")
    if isinstance(calls, list) and calls:
        yield from (
            _call(call, place) for place, call in enumerate(calls) if isinstance(call, dict)
        )
    elif isinstance(old, dict):  # old servers answer so, also to `tools`
        piece = _call({"function": old}, 0)
        if piece.name or piece.text:
            yield piece


class UrlCitation(NamedTuple):
    """The source of a part of an answer's text, between two positions."""

    url: str
    title: str
    start: int
    end: int


def citations(said: Any) -> Iterator[UrlCitation]:
    """Yield the citations of a delta or a message, in the form of providers with web search."""
    annotations = said.get("annotations") if isinstance(said, dict) else None
    for annotation in annotations if isinstance(annotations, list) else ():
        cited = annotation.get("url_citation") if isinstance(annotation, dict) else None
        if isinstance(cited, dict) and _text(cited.get("url")):
            start, end = (
                place if isinstance(place, int) and place >= 0 else 0
                for place in (cited.get("start_index"), cited.get("end_index"))
            )
            yield UrlCitation(cited["url"], _text(cited.get("title")), start, end)


def _parts(content: list[Any]) -> Iterator[ContentPiece]:
    """Yield the pieces of content that is a list of parts, as some vendors write it."""
    for part in content:
        if not isinstance(part, dict):
            continue
        thought = part.get("thinking")
        if isinstance(thought, list):
            yield from (
                ContentPiece("reasoning", piece.text)
                for piece in _parts(thought)
                if piece.kind != "picture"
            )
        elif _text(thought):
            yield ContentPiece("reasoning", _text(thought))
        if _text(part.get("text")):
            yield ContentPiece("text", _text(part["text"]))
        yield from _pictures([part])


def _pictures(parts: Any) -> Iterator[ContentPiece]:
    """Yield parts that are pictures, in the form of OpenRouter and LiteLLM."""
    for part in parts if isinstance(parts, list) else ():
        shown = part.get("image_url") if isinstance(part, dict) else None
        address = _text(shown.get("url")) if isinstance(shown, dict) else _text(shown)
        if address:
            yield ContentPiece("picture", address)


def picture_text(address: str) -> str:
    """Return a line of text in place of a picture, for dialects without a form for it."""
    if address.startswith(INLINE):
        return "\n[A picture is left out here. `/v1/chat/completions` tells it.]\n"
    return f"\n![picture]({address})\n"


def _transcript(sound: Any) -> str:
    return _text(sound.get("transcript")) if isinstance(sound, dict) else ""


def _call(call: dict[str, Any], place: int) -> ContentPiece:
    function, index = call.get("function"), call.get("index")
    function = function if isinstance(function, dict) else {}
    arguments = function.get("arguments")
    if isinstance(arguments, dict):  # as in TGI's answers
        arguments = msgspec.json.encode(arguments).decode()
    return ContentPiece(
        "call",
        _text(arguments),
        call=index if isinstance(index, int) else place,
        id=_text(call.get("id")),
        name=_text(function.get("name")),
    )


def joined_name(known: str, more: str) -> str:
    """Return a call's name with one more piece of it; some targets repeat what they told."""
    return more if more.startswith(known) else known + more


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def usage_object(tokens: TokenCounts) -> dict[str, Any]:
    """Return the ledger's tokens as a chat completion's usage."""
    given = prompt_tokens(tokens)
    return {
        "prompt_tokens": given,
        "completion_tokens": tokens.output,
        "total_tokens": given + tokens.output,
        "prompt_tokens_details": {"cached_tokens": tokens.cached},
        "completion_tokens_details": {"reasoning_tokens": tokens.reasoning},
    }


def tokens_of(usage: Any) -> TokenCounts:
    """Return the usage as the ledger reads it; zero for impossible usage."""
    if not isinstance(usage, dict):
        return TokenCounts()
    try:
        return tokens_from_usage(usage, Convention.CACHED_INSIDE)
    except UsageContradiction as error:
        return error.most
    except UsageError:
        return TokenCounts()

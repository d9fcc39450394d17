"""Common members of chat completions, completions and embeddings, read within bounds.

Each function raises `RequestError` naming the member and the fix.
"""

import re
from contextlib import suppress
from typing import Any

import msgspec

from gateway.errors import RequestError
from gateway.http.body import Members, decode_member, encode, holds
from gateway.kinds import hosted_tools
from router.types import Feature

MODEL_LIMIT = 256  # characters
MAX_TOKENS_LIMIT = 2**31 - 1  # above every context; larger numbers overflow records
NO_FEATURES: frozenset[Feature] = frozenset()
_PROMPT_MEMBERS = ("messages", "prompt", "input")
_CONTINUES = ("previous_response_id", "conversation", "cached_content", "cachedContent")
_OTHERS = {
    prompt: frozenset((*_PROMPT_MEMBERS, *_CONTINUES)) - {prompt} for prompt in _PROMPT_MEMBERS
}
_LISTED: dict[bytes, Any] = {b'"': list[str], b"{": list[str], b"[": list[list[int]]}
_FIRST = re.compile(rb"\[\s*(.)", re.DOTALL)  # first item: decoding a long list twice is slow
_NOTHING = (b"null", b"false", b"0", b'""', b"[]", b"{}")
_MEDIA_PARTS = (
    b'"image_url"', b'"input_image"', b'"video_url"', b'"audio_url"', b'"input_audio"',
)  # fmt: skip
_MEDIA_HINTS = (b'_url"', b'"input_')
_BACKSLASH, _UNDERSCORE = b"\\_"  # as numbers: faster in a search than bytes
# A URL that is no data, in `url` or in a part's short form.
_ADDRESS = re.compile(rb'"(?:url|image_url|video_url|audio_url)"\s*:\s*"(?!data:)', re.IGNORECASE)


def model_of(members: Members) -> str:
    return plain_model(decode_member(members, "model", str))


def plain_model(model: str | None) -> str:
    """Return the model's name. Raises `RequestError` for a name that headers cannot hold."""
    if not model:
        raise RequestError("bad_request", "`model` is required.", param="model")
    if len(model) > MODEL_LIMIT or not model.isprintable():
        raise RequestError(
            "bad_request",
            f"`model` must be a name of at most {MODEL_LIMIT} printable characters.",
            param="model",
        )
    return model


def prompt_of(members: Members, name: str) -> bytes:
    prompt = bytes(members.get(name, b"null"))
    if prompt == b"null":
        raise RequestError("bad_request", f"`{name}` is required.", param=name)
    return prompt


def refuse_others(members: Members, prompt_name: str) -> None:
    """Raise `RequestError` for another kind's prompt, or a reference to an earlier request.

    The other prompt might be read in place of the checked one: vLLM reads an embedding with
    `messages` as a conversation with its pictures. State that an earlier request left at one
    provider cannot be found from here.
    """
    if _OTHERS[prompt_name].isdisjoint(members):
        return
    for name in _PROMPT_MEMBERS:
        if name != prompt_name and name in members and bytes(members[name]) != b"null":
            words = f"`{name}` does not apply beside `{prompt_name}`. Leave it out."
            raise RequestError("unsupported", words, param=name)
    for name in _CONTINUES:
        if name in members and bytes(members[name]) != b"null":
            raise RequestError(
                "unsupported",
                f"`{name}` goes on from what one provider keeps, and no target here can be found "
                f"by it. Leave it out and send the whole conversation in `{prompt_name}`.",
                param=name,
            )


def prompts_of(members: Members, name: str) -> int:
    """Return the number of prompts or inputs: 1 for a text or token ids, else the list length.

    Lists are read to their last item, so that no target sees more prompts than were counted.
    """
    if bytes(members[name])[:1] == b'"':
        return 1
    first = _FIRST.match(members[name])
    listed = None if first is None else _LISTED.get(first[1])
    read: list[Any] = decode_member(members, name, listed or list[int])
    if not read:
        raise RequestError("bad_request", f"`{name}` must not be an empty list.", param=name)
    if listed and [] in read:
        raise RequestError(
            "bad_request", f"`{name}` must not hold an empty list of tokens.", param=name
        )
    return len(read) if listed else 1


def choices_of(members: Members, max_n: int) -> int:
    if "n" not in members:
        return 1
    n: int = decode_member(members, "n", int, 1)
    if not 1 <= n <= max_n:
        raise RequestError("bad_request", f"`n` must be between 1 and {max_n}.", param="n")
    return n


def max_tokens_of(members: Members, least: int = 1) -> int | None:
    """Return the larger of the limits under both names, as targets read either."""
    found: int | None = None
    for name in ("max_completion_tokens", "max_tokens"):
        value: int | None = decode_member(members, name, int) if name in members else None
        if value is not None:
            if not least <= value <= MAX_TOKENS_LIMIT:
                bounds = f"at least {least}" if value < least else f"at most {MAX_TOKENS_LIMIT}"
                raise RequestError("bad_request", f"`{name}` must be {bounds}.", param=name)
            found = value if found is None else max(value, found)
    return found


def is_streamed(members: Members) -> bool:
    return "stream" in members and bool(decode_member(members, "stream", bool, False))


def stream_options(members: Members) -> Members:
    """Return the stream options, decoded one level deep; other members are the target's."""
    if "stream_options" not in members:
        return {}
    found: Members = decode_member(members, "stream_options", Members, {})
    return found


def options_of(members: Members, *, stream: bool) -> Members:
    """Return the stream options. Raises `RequestError` if there are any without a stream."""
    options = stream_options(members)
    if options and not stream:
        raise RequestError(
            "bad_request", "`stream_options` needs `stream: true`.", param="stream_options"
        )
    return options


def is_set(options: Members, name: str) -> bool:
    return bytes(options.get(name, b"null")) not in _NOTHING


def session_of(members: Members, session: str | None) -> str | None:
    return session or (decode_member(members, "user", str) if "user" in members else None)


def refuse_store(members: Members) -> None:
    """Raise `RequestError` for `store`: providers only store chat completions."""
    if "store" in members and decode_member(members, "store", bool, False):
        raise RequestError(
            "unsupported",
            "`store` applies to `/v1/chat/completions` only. Leave it out.",
            param="store",
        )


def text_features(members: Members, n: int) -> set[Feature]:
    """Return the features that a chat completion or a completion needs of a target."""
    used: set[Feature] = set()
    if n > 1:
        used.add(Feature.N)
    if "tools" in members and bytes(members["tools"]) not in (b"null", b"[]"):
        used.add(Feature.TOOLS)
    if hosted_tools.requesting_member(members) is not None:
        used.add(Feature.HOSTED_TOOLS)
    if "response_format" in members and b'"json' in bytes(members["response_format"]):
        used.add(Feature.JSON_SCHEMA)
    if "logprobs" in members and bytes(members["logprobs"]) not in (b"null", b"false"):
        used.add(Feature.LOGPROBS)
    return used


def media_features(prompt: bytes) -> frozenset[Feature]:
    """Return the media features, and whether the target would fetch URLs.

    An own engine stands within the network, so fetching needs a feature of its own.
    """
    # A search for one byte takes a twentieth of one for several.
    if _BACKSLASH in prompt and holds(prompt, b"\\u00"):  # in names, too; encoding removes escapes
        with suppress(msgspec.MsgspecError, RecursionError):
            prompt = encode(msgspec.json.decode(prompt))
    url, sent = _MEDIA_HINTS  # each part's name has one of them
    if _UNDERSCORE not in prompt or not (holds(prompt, url) or holds(prompt, sent)):
        return NO_FEATURES
    if not any(holds(prompt, part) for part in _MEDIA_PARTS):
        return NO_FEATURES
    if _ADDRESS.search(prompt):
        return frozenset((Feature.IMAGES, Feature.MEDIA_URLS))
    return frozenset((Feature.IMAGES,))

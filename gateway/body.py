"""A request's JSON, opened one level deep: values keep their bytes, each key stands once.

The gateway reads and rewrites a handful of members; everything else passes through untouched, so
that a new parameter of a vendor works on the day it appears. Members that could turn an engine or
this gateway against its owner are removed (`DENIED`) or refused.
"""

import re
from typing import Any

import msgspec

from gateway.errors import RequestError

DENIED = frozenset(
    {
        # where and as whom to call: only configuration says so
        "api_base", "api_key", "base_url", "headers", "extra_headers", "extra_query",
        "extra_body", "organization", "custom_llm_provider",
        # code and templates executed by the engine, tenant isolation, engine internals
        "chat_template", "chat_template_kwargs", "mm_processor_kwargs", "cache_salt", "priority",
        "kv_transfer_params", "ec_transfer_params", "vllm_xargs", "logits_processors",
        "prompt_logprobs", "best_of", "request_id", "media_io_kwargs",
    }
)  # fmt: skip

MEMBERS_LIMIT = 1024  # walking more would hold up the loop that all streams share

_KEY = re.compile(rb'[ \t\r\n]*("(?:[^"\\\x00-\x1f]|\\.)*")[ \t\r\n]*:[ \t\r\n]*')
_NEXT = re.compile(rb"[ \t\r\n]*([,}])")
_OPEN = re.compile(rb"[ \t\r\n]*\{")

Members = dict[str, msgspec.Raw]

_decode_members = msgspec.json.Decoder(Members).decode
encode = msgspec.json.encode


def open_members(text: bytes) -> Members:
    """Split the top-level object into raw values; 400 on anything that is not one, or repeats."""
    try:
        members = _decode_members(text)
    except msgspec.ValidationError as error:
        raise RequestError("bad_request", "The body must be a JSON object.") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RequestError("bad_request", f"The body is not valid JSON: {error}") from error
    except RecursionError as error:
        raise RequestError("bad_request", "The body is nested too deeply.") from error
    if len(members) > MEMBERS_LIMIT:
        raise RequestError("bad_request", f"The body has more than {MEMBERS_LIMIT} members.")
    repeated = _repeated(text, members)
    if repeated is not None:
        raise RequestError(
            "duplicate_key", f"`{repeated}` stands twice in the body.", param=repeated
        )
    for key in DENIED.intersection(members):
        del members[key]
    return members


def _repeated(text: bytes, members: Members) -> str | None:
    """The first key that stands twice, or None.

    A decoder keeps a repeated key's last value, so walking the text beside the decoded values
    either meets a key again or a value that is not the one kept.
    """
    opening = _OPEN.match(text)
    assert opening is not None  # the decoder accepted an object
    position = opening.end()
    seen: set[str] = set()
    while len(seen) < len(members) or position < len(text):
        match = _KEY.match(text, position)
        if match is None:
            return None
        key: str = msgspec.json.decode(match[1])
        raw = bytes(members[key])
        position = match.end()
        if key in seen or text[position : position + len(raw)] != raw:
            return key
        seen.add(key)
        after = _NEXT.match(text, position + len(raw))
        if after is None:  # a longer value that begins with the kept one
            return key
        if after[1] == b"}":
            return None
        position = after.end()
    return None


def member(members: Members, name: str, kind: Any, default: Any = None) -> Any:
    """One member decoded as `kind`; a wrong type is a 400 that names it. JSON null is absent."""
    raw = members.get(name)
    if raw is None or bytes(raw) == b"null":
        return default
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise RequestError("bad_request", f"`{name}`: {error}", param=name) from error
    except RecursionError as error:
        raise RequestError("bad_request", f"`{name}` is nested too deeply.", param=name) from error


def raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(encode(value))

"""Anthropic's Messages for targets with that API: the native body, and its size.

Such a target gets the client's own body, so blocks, tools and members without a form in chat are no
reason to refuse. Where chat refuses, only such a target can serve. Three things are still refused:
names of objects in the provider's account that another team may own (files, containers), members
that let the provider choose a model or a place, and services whose price has no known bound.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from gateway.errors import RequestError
from gateway.http.body import Members, decode_member, encode, encode_raw
from gateway.kinds.inference_request import InferenceRequest
from gateway.kinds.native_request import METADATA, USER, NativeRequest
from gateway.kinds.prompt_parts import once
from gateway.request.dialects.messages_tools import runs_at_service
from ledger.journals.token_kinds import SEARCHES_LIMIT
from ledger.prices.modellimits import CONTEXT_UNSTATED
from router.types import Feature

# Members of the provider's own account, of its faster mode with its own price, and its records.
_WITHHELD: Final = ("diagnostics", "speed", "user_profile_id", "workspace_id")
_SERVICES: Final = ("mcp_servers", "container")
_NEVER_READ: Final = frozenset((
    "model", "max_tokens", "stream", "metadata", "temperature", "top_p", "top_k", "stop_sequences",
    "service_tier", "thinking", "tool_choice", "inference_geo", *_WITHHELD,
))  # fmt: skip
_EMPTY: Final = (b"null", b"[]", b"{}", b"false")
_DATA: Final = re.compile(rb'"[A-Za-z0-9+/=]{512,}"')  # of a picture or a document
_DATA_BYTES: Final = 6400  # bytes that such data count as in an estimate
_WEB_SEARCH: Final = re.compile(r"web_search_[0-9]{8}")
_WEB_FETCH: Final = re.compile(r"web_fetch_[0-9]{8}")
_LIMIT: Final = "max_uses"
_FETCHED: Final = re.compile(rb'"type"\s*:\s*"url"')


class WholeRequest(NamedTuple):
    """A request that only targets of its dialect can serve, with a stand-in in chat's form."""

    members: Members
    features: Mapping[Feature, str]
    session: str | None
    native: NativeRequest


def native_request(members: Members, refusal: RequestError | None = None) -> NativeRequest | None:
    """Return the native body; None where only the chat form may be sent."""
    if _names_kept_things(members):
        return None
    ignored = tuple(name for name in _WITHHELD if name in members)
    kept = {name: _as_judged(value) for name, value in members.items() if name not in _WITHHELD}
    return NativeRequest(kept, ignored, refusal=refusal)


def _as_judged(value: msgspec.Raw) -> msgspec.Raw:
    """Return a value as it was checked here: of a name that occurs twice, the last.

    A target might read the first, which was not checked. Values without duplicates keep their
    bytes.
    """
    text = bytes(value)
    if text[:1] not in (b"{", b"["):
        return value
    read = encode_raw(msgspec.json.decode(text))
    if bytes(read) == text:  # compact JSON, as many clients write it, so each name occurs once
        return value
    try:
        json.loads(text, object_pairs_hook=once)
    except (ValueError, RecursionError):
        return read
    return value


def whole_request(members: Members, refusal: RequestError) -> WholeRequest | None:
    """Return a request that chat refused as unsupported; None where no target may get it."""
    if refusal.kind != "unsupported":
        return None
    native = native_request(members, refusal)
    if native is None:
        return None
    limit = decode_member(members, "max_tokens", int)
    stand_in = {
        "model": members.get("model", encode_raw(None)),
        "messages": encode_raw([{"role": "user", "content": "."}]),
    }
    if limit is not None:
        stand_in["max_tokens"] = encode_raw(limit)
    if decode_member(members, "stream", bool, False):
        stand_in["stream"] = encode_raw(True)
        stand_in["stream_options"] = encode_raw({"include_usage": True})
    metadata: dict[str, Any] = decode_member(members, METADATA, dict[str, Any], {})
    user = metadata.get(USER)
    session = user if isinstance(user, str) else None
    features = {Feature.MESSAGES: refusal.param or "messages", **_features(members)}
    return WholeRequest(stand_in, features, session, native)


def with_native(asked: InferenceRequest, native: NativeRequest | None) -> InferenceRequest:
    """Return the request with its native body, and with the bytes that only its targets read.

    A request that chat refused has no known size: its bound is a whole context.
    """
    if native is None:
        return asked
    read = [bytes(value) for name, value in native.members.items() if name not in _NEVER_READ]
    if native.refusal is not None:
        data = [match.end() - match.start() for value in read for match in _DATA.finditer(value)]
        size = sum(map(len, read)) - sum(data) + _DATA_BYTES * len(data)
        return replace(
            asked, native=native, prompt_bytes=size, searches_limit=stated_searches(native.members),
            seldom_read_bytes=asked.seldom_read_bytes + CONTEXT_UNSTATED,
        )  # fmt: skip
    more = max(0, sum(map(len, read)) - asked.prompt_bytes)
    if any(b'"document"' in value and _FETCHED.search(value) for value in read):
        more += CONTEXT_UNSTATED  # the length of fetched content is unknown
    return replace(asked, native=native, seldom_read_bytes=asked.seldom_read_bytes + more)


def _features(members: Members) -> dict[Feature, str]:
    """Return what the provider runs itself, for a fee or with text of unknown length."""
    for name in _SERVICES:
        if name in members and bytes(members[name]) not in _EMPTY:
            return {Feature.HOSTED_TOOLS: name}
    tools = decode_member(members, "tools", list[dict[str, Any]], [])
    for number, tool in enumerate(tools):
        place = f"tools[{number}]"
        if runs_at_service(tool, place):
            return {Feature.HOSTED_TOOLS: place}
    management: dict[str, Any] = decode_member(members, "context_management", dict[str, Any], {})
    edits = management.get("edits")
    if not all(str(_type_of(edit)).startswith("clear_") for edit in edits or ()):
        return {Feature.HOSTED_TOOLS: "context_management"}  # it reads and writes again
    return {}


def stated_searches(members: Members) -> int:
    """Return how many searches the request allows its target; 0 without a stated limit.

    Each web search tool counts its `max_uses`, and all need one. With other tools that run at the
    provider, no limit counts, since these may search, too. A limit whose name occurs twice, or in
    two spellings, does not count either.
    """
    if any(name in members and bytes(members[name]) not in _EMPTY for name in _SERVICES):
        return 0
    try:
        tools = json.loads(bytes(members.get("tools", b"null")), object_pairs_hook=once)
    except (ValueError, RecursionError):
        return 0
    searches = 0
    for tool in tools if isinstance(tools, list) else ():
        if not isinstance(tool, dict) or not runs_at_service(tool, "tools"):
            continue
        kind, most = str(tool.get("type")), tool.get(_LIMIT)
        if _WEB_FETCH.fullmatch(kind):
            continue  # no fee, and no search
        spellings = [name for name in tool if name.casefold() == _LIMIT]
        is_search = _WEB_SEARCH.fullmatch(kind) is not None
        if not is_search or spellings != [_LIMIT] or type(most) is not int or most < 1:
            return 0
        searches += most
    return searches if searches <= SEARCHES_LIMIT else 0


def _type_of(value: Any) -> Any:
    return value.get("type") if isinstance(value, dict) else None


def _names_kept_things(members: Members) -> bool:
    """Return whether a file or container of the provider's account is named.

    It may belong to another team.
    """
    container = decode_member(members, "container", Any)
    if isinstance(container, str) or (isinstance(container, dict) and container.get("id")):
        return True
    given = bytes(members.get("messages", b""))
    if b"\\u00" in given:  # in names, too; encoding it again removes escapes
        given = encode(msgspec.json.decode(given))
    return b'"file_id"' in given and _holds_file(msgspec.json.decode(given))


def _holds_file(value: Any) -> bool:
    """Return whether a stored file is a source or uploaded to a container.

    Results of tools only name their files.
    """
    left = [value]
    while left:
        item = left.pop()
        if isinstance(item, list):
            left += item
        elif isinstance(item, dict):
            if "file_id" in item and item.get("type") in ("file", "container_upload"):
                return True
            left += item.values()
    return False

"""What a client asked for, read once: the facts that policy, decision and metering need.

Bounds are enforced here, before anything reaches a target: `n`, prompt shapes, media addresses.
"""

import re
from contextlib import suppress
from typing import Any

import msgspec
from msgspec.structs import replace

from gateway.errors import RequestError
from gateway.http.body import Members, encode, member, raw
from gateway.http.forms import Form
from gateway.limits import asks, caps, hosted
from gateway.promptsize import prompt_bytes
from router.prompts import Extent
from router.request_kinds import Kind
from router.types import Feature

PATHS: dict[str, Kind] = {
    "/v1/chat/completions": Kind.CHAT,
    "/v1/completions": Kind.COMPLETION,
    "/v1/embeddings": Kind.EMBEDDING,
}
# Plain names: asking an enumeration for a member costs ten times as much.
_CHAT, _COMPLETION, _EMBEDDING = Kind.CHAT, Kind.COMPLETION, Kind.EMBEDDING
_PROMPT_MEMBER = {_CHAT: "messages", _COMPLETION: "prompt", _EMBEDDING: "input"}
_PROMPT_MEMBERS = tuple(_PROMPT_MEMBER.values())
MODEL_LIMIT = 256  # characters
MAX_TOKENS_LIMIT = 2**31 - 1  # above every context there is; larger numbers overflow records
EMBEDDING_INPUTS_LIMIT = 2048  # OpenAI's own, by its reference of `/v1/embeddings` (2026-11)
_DECODED = frozenset({_CHAT, _COMPLETION})
_CONTINUES = ("previous_response_id", "conversation")
_LISTED: dict[bytes, Any] = {b'"': list[str], b"[": list[list[int]]}
_FIRST = re.compile(rb"\[\s*(.)", re.DOTALL)  # of a list: decoding a long one twice takes long
_NOTHING = (b"null", b"false", b"0", b'""', b"[]", b"{}")
_TRUE = raw(True)
_MEDIA_PARTS = (
    b'"image_url"', b'"input_image"', b'"video_url"', b'"audio_url"', b'"input_audio"',
)  # fmt: skip
_MEDIA_HINTS = (b'_url"', b'"input_')
_PLAIN: frozenset[Feature] = frozenset()
_BACKSLASH, _UNDERSCORE = b"\\_"  # as numbers: bytes are first taken for one, and fail as such
# An address that is no data of its own: behind `url` itself or a part's short form.
_ADDRESS = re.compile(rb'"(?:url|image_url|video_url|audio_url)"\s*:\s*"(?!data:)', re.IGNORECASE)


class Asked(msgspec.Struct, frozen=True):
    """One request as asked. `max_tokens` is per choice; `prompt_bytes` the size of what is read."""

    kind: Kind
    path: str  # under the target's base URL: "/chat/completions"
    model: str
    stream: bool
    wants_usage: bool
    wants_running_usage: bool
    prompts: int  # `/v1/completions` takes a list of prompts; `n` x prompts is within `max_n`
    n: int
    max_tokens: int | None
    prompt_bytes: int
    features: frozenset[Feature]
    session: str | None
    members: Members
    # From another dialect: what stands in for `members` at targets that take marks of what to
    # cache. Its limit has each target's own name, because the client named none of chat's.
    translated: Members | None = None
    form: Form | None = None  # in place of `members`, where a file is asked about
    extent: Extent | None = None  # of kinds that have no conversation
    media_parts: int = 0  # pictures and films, or more: texts may look like them

    def with_marks(self) -> "Asked":
        if not self.translated:
            return self
        return replace(self, members={**self.members, **self.translated})

    def ranked(self, priority: int) -> "Asked":
        """For an engine that serves by priority; a line of a batch has its own."""
        if not priority or "priority" in self.members or self.kind not in _DECODED:
            return self
        return replace(self, members={**self.members, "priority": raw(priority)})


def read(path: str, members: Members, *, max_n: int, session: str | None) -> Asked:
    """Validate and condense; raises `RequestError` naming the parameter and the fix."""
    kind = PATHS[path]
    model = model_of(members)
    prompt_name = _PROMPT_MEMBER[kind]
    prompt_text = bytes(members.get(prompt_name, b"null"))
    if prompt_text == b"null":
        raise RequestError("bad_request", f"`{prompt_name}` is required.", param=prompt_name)
    if kind is _CHAT and (prompt_text[:1] != b"[" or not prompt_text[1:-1].strip()):
        raise RequestError(
            "bad_request", "`messages` must be a list with at least one message.", param="messages"
        )
    _refuse_second(members, prompt_name)
    _refuse_continued(members, prompt_name)
    caps.check(members, prompt_text if kind is _CHAT else b"")
    asks.check(members)
    prompts, n = _prompts(members, prompt_name, kind), _choices(members, kind, max_n)
    extent = None
    if kind is _EMBEDDING:
        _bound_inputs(prompts)
        extent = _longest(prompts, members[prompt_name])
        prompts = 1
    elif n * prompts > max_n:
        raise RequestError(
            "bad_request",
            f"`prompt`: {prompts} prompts with `n` = {n} ask for {n * prompts} answers; one "
            f"request may ask for {max_n}. Send fewer prompts at a time.",
            param="prompt",
        )
    stream = "stream" in members and member(members, "stream", bool, False)
    features = _features(kind, members, prompt_text, n)
    options = _options(members)
    if options and not stream:
        raise RequestError(
            "bad_request", "`stream_options` needs `stream: true`.", param="stream_options"
        )
    return Asked(
        kind=kind,
        path=path[3:],
        model=model,
        stream=stream and kind is not _EMBEDDING,
        wants_usage=_is_said(options, "include_usage"),
        wants_running_usage=_is_said(options, "continuous_usage_stats"),
        prompts=prompts,
        n=n,
        max_tokens=_max_tokens(kind, members),
        prompt_bytes=prompt_bytes(members),
        features=features,
        session=session or (member(members, "user", str) if "user" in members else None),
        members=members,
        extent=extent,
        media_parts=caps.media_parts(prompt_text) if Feature.IMAGES in features else 0,
    )


def _options(members: Members) -> Members:
    """Of streams, opened one level deep: what else is in there is the target's."""
    if "stream_options" not in members:
        return {}
    found: Members = member(members, "stream_options", Members, {})
    return found


def _is_said(options: Members, name: str) -> bool:
    return bytes(options.get(name, b"null")) not in _NOTHING


def model_of(members: Members) -> str:
    return plain_model(member(members, "model", str))


def plain_model(model: str | None) -> str:
    """It goes on into headers and into the books, which do not take every text."""
    if not model:
        raise RequestError("bad_request", "`model` is required.", param="model")
    if len(model) > MODEL_LIMIT or not model.isprintable():
        raise RequestError(
            "bad_request",
            f"`model` must be a name of at most {MODEL_LIMIT} printable characters.",
            param="model",
        )
    return model


def _max_tokens(kind: Kind, members: Members) -> int | None:
    if kind is _EMBEDDING:
        return 0
    found: int | None = None
    for name in ("max_completion_tokens", "max_tokens"):
        value: int | None = member(members, name, int) if name in members else None
        if value is not None:
            if not 1 <= value <= MAX_TOKENS_LIMIT:
                bounds = "at least 1" if value < 1 else f"at most {MAX_TOKENS_LIMIT}"
                raise RequestError("bad_request", f"`{name}` must be {bounds}.", param=name)
            found = value if found is None else max(value, found)  # targets read either
    if found is not None:
        return found
    return 16 if kind is _COMPLETION else None  # OpenAI's documented default of completions


def _refuse_second(members: Members, prompt_name: str) -> None:
    """Another kind's prompt would be read in place of the one that was judged.

    vLLM takes an embedding that has `messages`, too, for one of a conversation with its pictures.
    """
    for name in _PROMPT_MEMBERS:
        if name != prompt_name and name in members and bytes(members[name]) != b"null":
            words = f"`{name}` does not apply beside `{prompt_name}`. Leave it out."
            raise RequestError("unsupported", words, param=name)


def _refuse_continued(members: Members, prompt_name: str) -> None:
    """What another request left at one provider cannot be found again from here."""
    for name in _CONTINUES:
        if name in members and bytes(members[name]) != b"null":
            raise RequestError(
                "unsupported",
                f"`{name}` goes on from what one provider keeps, and no target here can be found "
                f"by it. Leave it out and send the whole conversation in `{prompt_name}`.",
                param=name,
            )


def _choices(members: Members, kind: Kind, max_n: int) -> int:
    if "n" not in members:
        return 1
    if kind is _EMBEDDING and bytes(members["n"]) != b"null":
        raise RequestError("unsupported", "`n` does not apply to embeddings.", param="n")
    n: int = member(members, "n", int, 1)
    if not 1 <= n <= max_n:
        raise RequestError("bad_request", f"`n` must be between 1 and {max_n}.", param="n")
    return n


def _prompts(members: Members, name: str, kind: Kind) -> int:
    """How many prompts (of embeddings: inputs) it carries: a text or token ids, or a list of one.

    Lists are read to their last item: what is counted as one here must not be many to a target.
    """
    if kind is _CHAT or bytes(members[name])[:1] == b'"':
        return 1
    first = _FIRST.match(members[name])
    listed = None if first is None else _LISTED.get(first[1])
    read: list[Any] = member(members, name, listed or list[int])
    if not read:
        raise RequestError("bad_request", f"`{name}` must not be an empty list.", param=name)
    if listed and [] in read:
        raise RequestError(
            "bad_request", f"`{name}` must not hold an empty list of tokens.", param=name
        )
    return len(read) if listed else 1


def _bound_inputs(inputs: int) -> None:
    if inputs > EMBEDDING_INPUTS_LIMIT:
        raise RequestError(
            "bad_request",
            f"`input` has {inputs} items; one request may have {EMBEDDING_INPUTS_LIMIT}.",
            param="input",
        )


def _longest(inputs: int, listed: msgspec.Raw) -> Extent | None:
    """An engine reads a list's texts one by one: the longest must fit, not all together."""
    if inputs == 1:
        return None
    sizes = [len(bytes(item)) for item in msgspec.json.decode(listed, type=list[msgspec.Raw])]
    return Extent(longest=max(sizes) / max(sum(sizes), 1))


def _keeps(kind: Kind, members: Members) -> bool:
    """Whether the provider shall keep the answer, as OpenAI does with chat completions."""
    if "store" not in members:
        return False
    store: bool = member(members, "store", bool, False)
    if store and kind is not _CHAT:
        raise RequestError(
            "unsupported",
            "`store` applies to `/v1/chat/completions` only. Leave it out.",
            param="store",
        )
    return store


def _features(kind: Kind, members: Members, prompt: bytes, n: int) -> frozenset[Feature]:
    used: set[Feature] = set()
    if _keeps(kind, members):
        used.add(Feature.STORE)
    if n > 1:
        used.add(Feature.N)
    if kind is _EMBEDDING:
        return frozenset(used)
    if "tools" in members and bytes(members["tools"]) not in (b"null", b"[]"):
        used.add(Feature.TOOLS)
    if hosted.asked_by(members) is not None:
        used.add(Feature.HOSTED_TOOLS)
    if "response_format" in members and b'"json' in bytes(members["response_format"]):
        used.add(Feature.JSON_SCHEMA)
    if "logprobs" in members and bytes(members["logprobs"]) not in (b"null", b"false"):
        used.add(Feature.LOGPROBS)
    if kind is _CHAT:
        used |= media_of(prompt)
    return frozenset(used) if used else _PLAIN


def media_of(prompt: bytes) -> frozenset[Feature]:
    """Media, and whether the target would fetch them: an own engine stands inside the network."""
    # Looking for one byte takes a twentieth of looking for several.
    if _BACKSLASH in prompt and b"\\u00" in prompt:  # in names, too: written again, none is
        with suppress(msgspec.MsgspecError, RecursionError):
            prompt = encode(msgspec.json.decode(prompt))
    url, sent = _MEDIA_HINTS  # one of them is in each
    if _UNDERSCORE not in prompt or (url not in prompt and sent not in prompt):
        return _PLAIN
    if not any(part in prompt for part in _MEDIA_PARTS):
        return _PLAIN
    if _ADDRESS.search(prompt):
        return frozenset((Feature.IMAGES, Feature.MEDIA_URLS))
    return frozenset((Feature.IMAGES,))


def _name_limit(members: Members) -> None:
    """By the one name that every engine reads: TensorRT-LLM does not know OpenAI's newer one."""
    given = members.pop("max_completion_tokens", None)
    if given is not None and bytes(given) != b"null":
        members["max_tokens"] = given


def body_for(
    asked: Asked,
    *,
    upstream_model: str,
    own: bool,
    max_tokens_cap: int | None,
    salt: str | None,
    cap_name: str = "max_tokens",
) -> bytes:
    """The body one target gets: model renamed, usage asked for, caps and salt set by us.

    `cap_name`: the member that caps the answer there, when the client named none.
    """
    if asked.form is not None:
        return asked.form.body_for(upstream_model)
    members = dict(asked.members)
    members["model"] = raw(upstream_model)
    if own:
        _name_limit(members)
    if asked.stream:
        options = _options(asked.members)
        options["include_usage"] = _TRUE
        if own:
            options["continuous_usage_stats"] = _TRUE
        else:
            options.pop("continuous_usage_stats", None)
        members["stream_options"] = raw(options)
    if asked.translated is not None and "max_tokens" in members:
        members[cap_name] = members.pop("max_tokens")
    if max_tokens_cap is not None:
        name = "max_completion_tokens" if "max_completion_tokens" in members else cap_name
        members[name] = raw(max_tokens_cap)
    if salt is not None:
        members["cache_salt"] = raw(salt)
    return encode(members)

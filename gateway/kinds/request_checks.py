"""Checks of members that cost an engine work per token, or evade the hold's terms.

They follow the request models of vLLM 0.32, SGLang, TensorRT-LLM and llama.cpp (2026-11). An engine
walks such a list, or tries such a pattern, for each token of each answer, while all its other
requests wait.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from gateway.errors import RequestError, invalid_error
from gateway.http.body import Members, decode_member
from gateway.kinds.prompt_bytes import TEXT_MEMBERS
from gateway.kinds.prompt_parts import NamePattern, once
from gateway.kinds.request_size import SHAPES

STOPS = 64  # texts; OpenAI takes 4, as vLLM does by default
STOP_CHARACTERS = 1024  # per text: an engine holds back as much of an answer
IDS = 1024  # vLLM's limit of allowed tokens and of biases
WORDS = 128  # vLLM's limits, too
PATTERN_TOKENS = 128

_LISTS: Final[Mapping[str, int]] = {
    "stop_token_ids": IDS,
    "allowed_token_ids": IDS,
    "logit_bias": IDS,
    "bad_words": WORDS,
    "logprob_token_ids": WORDS,
    "token_ids_logprob": WORDS,
}
_ELSEWHERE = "Name the one that shall answer in `model`."
_ADAPTER = "adapters are models of the configuration. " + _ELSEWHERE
# Other names of `max_tokens` and `n`, and objects with them: of llama.cpp, Ollama, Hugging Face,
# Gemini and Bedrock. LiteLLM passes unknown members on.
_LIMITS = (
    "n_predict", "num_predict", "max_new_tokens", "max_output_tokens", "maxOutputTokens",
    "maxTokens", "max_tokens_to_sample", "maxTokenCount", "max_gen_len", "generation_config",
    "generationConfig", "inferenceConfig", "max_output_length", "maxCompletionTokens",
    "textGenerationConfig", "inference_config", "maxtokens", "maxoutputtokens", "maxtokencount",
    "maxcompletiontokens", "generationconfig", "inferenceconfig", "textgenerationconfig",
    "max_length", "max_completion_length", "maximum_tokens", "max_output",
)  # fmt: skip
CHOICES = (
    "n_cmpl", "num_return_sequences", "num_generations", "candidate_count", "candidateCount",
    "candidatecount", "numResults", "num_results", "num_choices", "num_samples", "num_beams",
)  # fmt: skip
# Other members for dearer services: Bedrock's, and Anthropic's for speed and region.
_SERVICES = ("serviceTier", "performanceConfig", "performance_config", "speed", "inference_geo")
# Objects with other limits, choices or output media are searched.
_KEPT_INSIDE = (
    "n", "best_of", "max_tokens", "max_completion_tokens", "modalities", "response_modalities",
    "responseModalities",
)  # fmt: skip
# These change the answer, so they are refused instead of removed.
REFUSED: Final[Mapping[str, str]] = {
    "use_beam_search": "each beam is a new request to an engine at every token. "
    "Ask for several answers with `n`.",
    "stop_regex": "an engine would try it at every token. Send texts in `stop`.",
    **dict.fromkeys(_LIMITS, "it is not what is held for. Send `max_tokens`."),
    **dict.fromkeys(CHOICES, "it is not what is held for. Send `n`."),
    **dict.fromkeys(_SERVICES, "it changes what tokens cost. Send `service_tier`."),
    "lora_path": _ADAPTER,
    "lora_request": _ADAPTER,
    "lora": _ADAPTER,
    "adapter_id": _ADAPTER,
    "models": "prices and budgets are of one model. " + _ELSEWHERE,
    "fallbacks": "prices and budgets are of one model. " + _ELSEWHERE,
}
_DETECTION, _STOP, _MANAGED = "repetition_detection", "stop", "context_management"
_LOOKED_AT = frozenset((*REFUSED, *_LISTS, _DETECTION, _STOP, _MANAGED))
_NOTHING = (b"null", b"false", b"0", b'""', b"[]", b"{}")
# Defaults: one answer, and the standard service in the standard region.
_ONE = (*CHOICES, "n", "best_of")
_USUAL: Final = frozenset(("standard", "default", "global"))
# Names within a schema are members of an answer, and no options of a target.
_SCHEMAS: Final = frozenset(("properties", "patternProperties", "$defs", "definitions"))


# Checked elsewhere: formats of answers, and texts of the prompt.
_NOT_OPENED = TEXT_MEMBERS | {
    *SHAPES, "prediction", "audio", "web_search_options", "search_parameters",
}  # fmt: skip
_NESTED: Final = frozenset((*_LIMITS, *CHOICES, *_KEPT_INSIDE))
_INSIDE = NamePattern('"', tuple(sorted(_NESTED)), behind=r"\s*+:\s*+(?!null)")

_TTL = NamePattern('"ttl"', ("ttl",), behind=r"\s*+:")
_CACHE_TIMES: Final = (None, "5m", "1h")


class _Detection(msgspec.Struct):
    max_pattern_size: Any = 0


def check(members: Members) -> None:
    """Raise `RequestError` for the first member above its limit, naming the limit."""
    if _LOOKED_AT.isdisjoint(members):
        return
    for name in _LOOKED_AT.intersection(members):
        if name == _STOP:
            _check_stop(members)
        elif bytes(members[name]) in _NOTHING or _is_usual(members, name):
            continue
        elif name in REFUSED:
            raise refused_member(name)
        elif name == _DETECTION:
            _check_detection(members)
        elif name == _MANAGED:
            _check_management(members)
        else:
            _check_list(members, name, _LISTS[name])


def refuse_long_caches(text: bytes, param: str) -> None:
    """Raise `RequestError` for a cache mark with a lifetime that providers do not list.

    Some charge for a cache by the hour (Gemini), and accept any lifetime.
    """
    if _TTL.count(text) and not _keeps_usual(text, param):
        words = "a `ttl` of `cache_control` may be `5m` or `1h`, or be left out."
        raise RequestError("bad_request", f"`{param}`: {words}", param=param)


def _keeps_usual(text: bytes, param: str) -> bool:
    """Return whether every cache mark has a usual lifetime."""
    try:
        opened: list[Any] = [{param: json.loads(text, object_pairs_hook=once)}]
    except (ValueError, RecursionError):
        return False
    while opened:
        value = opened.pop()
        if isinstance(value, list):
            opened += value
        elif isinstance(value, dict):
            mark = value.get("cache_control")
            if isinstance(mark, dict) and mark.get("ttl") not in _CACHE_TIMES:
                return False
            opened += value.values()
    return True


def refuse_nested(members: Members) -> None:
    """Raise `RequestError` for a vendor's member with another limit or more choices inside.

    LiteLLM and others pass such objects on, and a target may read its own members in them.
    """
    for name in members:
        if name in _NOT_OPENED:
            continue
        text = bytes(members[name])
        if text[:1] in b"{[" and _INSIDE.count(text) and _holds_limit(text):
            words = (
                "it holds a limit or choices of its own. Send `max_tokens`, `n` or `modalities`."
            )
            raise RequestError("unsupported", f"`{name}` is not taken: {words}", param=name)


def _holds_limit(text: bytes) -> bool:
    """Return whether a member of `_NESTED` occurs there with an effective value.

    Names and contents of a schema's properties do not count.
    """
    try:
        opened = [json.loads(text, object_pairs_hook=once)]
    except (ValueError, RecursionError):  # a name repeats: which one counts is unknown
        return True
    while opened:
        value = opened.pop()
        if isinstance(value, list):
            opened += value
        elif isinstance(value, dict):
            for name, inner in value.items():
                usual = inner is None or inner == ["text"] or (name in _ONE and inner == 1)
                if name in _NESTED and not usual:
                    return True
                if not (name in _SCHEMAS and isinstance(inner, dict)):
                    opened.append(inner)
    return False


def _is_usual(members: Members, name: str) -> bool:
    """Return whether the member asks for the default."""
    if name in CHOICES:
        return bytes(members[name]) == b"1"
    if name not in _SERVICES:
        return False
    asked: Any = decode_member(members, name, Any)
    said = asked.values() if isinstance(asked, dict) else (asked,)  # Bedrock's values are objects
    return all(word is None or (isinstance(word, str) and word in _USUAL) for word in said)


def refused_member(name: str) -> RequestError:
    """Return the error for a member of `REFUSED`."""
    return RequestError("unsupported", f"`{name}` is not taken: {REFUSED[name]}", param=name)


def _check_stop(members: Members) -> None:
    """Check `stop`: a text, or a list of texts."""
    text = bytes(members[_STOP])
    if text == b"null":
        return
    if text[:1] not in (b'"', b"["):
        raise invalid_error(_STOP, "must be a string or a list of strings.")
    listed = text[:1] == b"["
    given: Any = decode_member(members, _STOP, list[str] if listed else str)
    stops: list[str] = given if listed else [given]
    if len(stops) > STOPS:
        raise invalid_error(_STOP, f"has {len(stops)} texts; one request may have {STOPS}.")
    if any(len(stop) > STOP_CHARACTERS for stop in stops):
        raise invalid_error(_STOP, f"may have {STOP_CHARACTERS} characters in each text.")


def _check_detection(members: Members) -> None:
    most = decode_member(members, _DETECTION, _Detection).max_pattern_size
    if not isinstance(most, int) or most > PATTERN_TOKENS:
        words = f"may look for patterns of {PATTERN_TOKENS} tokens (`max_pattern_size`)."
        raise invalid_error(_DETECTION, words)


def _check_management(members: Members) -> None:
    """Refuse context edits other than clearing: a compaction reads and writes again."""
    given: Any = decode_member(members, _MANAGED, Any)
    edits = given.get("edits") if isinstance(given, dict) and given.keys() == {"edits"} else None
    kinds = [
        edit.get("type") if isinstance(edit, dict) else None
        for edit in (edits if isinstance(edits, list) else [None])
    ]
    if not all(isinstance(kind, str) and kind.startswith("clear_") for kind in kinds):
        words = "it makes a target read and write beside the answer. Leave it out."
        raise RequestError("unsupported", f"`{_MANAGED}` is not taken: {words}", param=_MANAGED)


def _check_list(members: Members, name: str, limit: int) -> None:
    """Check the length of a list, or of an object by token."""
    given = bytes(members[name])
    kind: Any = dict[str, msgspec.Raw] if given[:1] == b"{" else list[msgspec.Raw]
    count = len(decode_member(members, name, kind))
    if count > limit:
        raise invalid_error(name, f"has {count} entries; one request may have {limit}.")

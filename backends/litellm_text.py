"""Conversion of LiteLLM's objects to OpenAI's bytes, and of its exceptions to our errors.

Usage is sent last, in a separate chunk, wherever LiteLLM has it. LiteLLM's texts quote requests,
answers and sometimes keys: a `BackendError` has none of them, and a refusal for the client is
reduced to the provider's message without secrets.
"""

import re
import traceback
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

import httpx
import msgspec

from backends.charged_errors import FILTERED, is_filtered, refusal_usage
from backends.errors import (
    BackendError,
    InvalidResponse,
    ServerError,
    UpstreamUnreachable,
    WrongAddress,
    failure_of,
)
from backends.litellm_usage import answer_usage, choice_says
from backends.native_endings import tell_ending
from backends.ratelimit import parse_rate_limit, parse_retry_after
from backends.secret import HIDDEN, Secret, strike_out
from backends.vectors import encode_vector
from backends.web_citations import add_annotations

TAIL_BYTES = 16 * 1024  # kept of a stream
WHOLE_BYTES = 1024 * 1024  # kept of a whole answer
_COUNTED = re.compile(
    rb'(?<!\\)"[a-z_]*(?:token|usage|eval_count|units)[a-z_]*"\s*:', re.IGNORECASE
)
DONE = b"data: [DONE]\n\n"

# OpenAI's request members; all others that LiteLLM knows control LiteLLM itself.
PARAMETERS = (
    "messages", "prompt", "input", "temperature", "top_p", "n", "stop", "max_tokens",
    "max_completion_tokens", "presence_penalty", "frequency_penalty", "logit_bias", "logprobs",
    "top_logprobs", "seed", "user", "response_format", "tools", "tool_choice",
    "parallel_tool_calls", "reasoning_effort", "functions", "function_call", "modalities",
    "audio", "prediction", "suffix", "echo", "dimensions", "encoding_format",
    # Of pictures and speech.
    "background", "moderation", "output_compression", "output_format", "quality", "size", "style",
    "instructions", "speed", "voice",
    # Members of transcription requests.
    "file", "language", "timestamp_granularities",
)  # fmt: skip

SPOKEN_PATHS = frozenset({"/audio/speech"})  # paths answered with a file
PICTURE_PATHS = frozenset({"/images/generations"})
_SOUND = "audio/mpeg"  # type of an answer without a media type
_NAMES = ("id", "object", "created", "model", "service_tier")
OWN_FAILURE = 500  # LiteLLM also uses it for its own failures
_MESSAGE_LIMIT = 1000
_SECRET = re.compile(r"(?i)\b(sk|key|bearer|token|aiza|akia|gsk|xai)[-_ =:]?[A-Za-z0-9_\-]{12,}")
_PREFIX = re.compile(r"^(litellm\.\w+: )?(\w+(Exception|Error)\s*[-:]\s*)*")


class ToolCallPlaces:
    """Indices of one choice's tool calls, as LiteLLM gives some providers' calls one index."""

    def __init__(self) -> None:
        self._ids: list[str] = []  # ids of the calls so far
        self._places: dict[int, int] = {}  # our index of the last call, by LiteLLM's index

    def place(self, choice: dict[str, Any]) -> None:
        """Give each call its own index, and the finish reason of tool calls."""
        for call in (choice.get("delta") or {}).get("tool_calls") or ():
            told, name = call.get("index") or 0, call.get("id")
            if (name and name not in self._ids) or told not in self._places:
                self._places[told] = len(self._ids)
                self._ids.append(name or "")
            call["index"] = self._places[told]
        if self._ids and choice.get("finish_reason") == "stop":
            choice["finish_reason"] = "tool_calls"


class StreamWriter:
    """A writer of chunks as events, with total usage at the end."""

    def __init__(self) -> None:
        self.said = False  # the model has sent output
        self._running: Mapping[str, Any] | None = None  # the usage sent last
        self._named: dict[str, Any] = {}  # id, model, ... of the last chunk
        self.usage: dict[str, Any] | None = None  # LiteLLM's sum or estimate
        self._calls: dict[int, ToolCallPlaces] = {}  # by choice
        self._lengths: dict[int, int] = {}  # characters that each choice has said

    def event(
        self, chunk: Any, tail: bytes = b"", running: Mapping[str, Any] | None = None
    ) -> bytes:
        """Return one chunk's event, or nothing if it only had usage.

        `tail`: the last bytes of the provider's answer. `running`: usage reported so far, which is
        all that is known if the answer ends here. Raises `UpstreamBroken` if the provider ended it
        with an error.
        """
        value: dict[str, Any] = chunk.model_dump(mode="json", exclude_none=True)
        self.usage = _plain_usage(value.pop("usage", None)) or self.usage
        self._named = {key: value[key] for key in _NAMES if key in value}
        choices = value.get("choices") or []
        if not any(choice.get("finish_reason") or _has_content(choice) for choice in choices):
            return b""
        for choice in choices:
            choice.setdefault("finish_reason", None)
            self._calls.setdefault(choice.get("index", 0), ToolCallPlaces()).place(choice)
            tell_ending(choice, tail)
            self._cite(choice)
            self.said = self.said or choice_says(choice)
        ends = any(choice["finish_reason"] for choice in choices)  # the full usage follows
        if running not in (None, self._running) and not ends:
            value["usage"] = self._running = running
        return b"data: " + msgspec.json.encode(value) + b"\n\n"

    def _cite(self, choice: dict[str, Any]) -> None:
        place, delta = choice.get("index", 0), choice.get("delta")
        before = self._lengths.get(place, 0)
        add_annotations(delta, before)
        text = delta.get("content") if isinstance(delta, dict) else None
        self._lengths[place] = before + (len(text) if isinstance(text, str) else 0)

    def usage_event(self, told: dict[str, Any] | None) -> bytes:
        """Return the last chunk before `[DONE]`: no choices, and the provider's whole usage."""
        if told is None:
            return b""
        value = self._named | {"choices": [], "usage": told}
        return b"data: " + msgspec.json.encode(value) + b"\n\n"


def _has_content(choice: dict[str, Any]) -> bool:
    return bool(choice.get("delta")) or bool(choice.get("text"))


def whole_answer(
    result: Any,
    *,
    tail: bytes = b"",
    is_counted: bool = True,
    zeros_count: bool = True,
    encoding: Any = None,
) -> bytes:
    """Return a finished answer as OpenAI's JSON.

    Without `zeros_count`, usage of zero counts as none: for images whose target reports nothing,
    LiteLLM reports zero tokens. `tail`: the last bytes of the provider's answer. `is_counted`:
    whether the provider counts anything, since LiteLLM counts words otherwise. `encoding`: the
    requested one of vectors. Raises `UpstreamBroken` if it ended with an error.
    """
    value: dict[str, Any] = result.model_dump(mode="json", exclude_none=True)
    usage = answer_usage(_plain_usage(value.pop("usage", None)), tail)
    if not (is_counted and (zeros_count or _counts(usage))):
        usage = None
    for choice in value.get("choices", ()):
        if isinstance(choice.get("message"), dict):
            choice["message"].setdefault("content", None)
            add_annotations(choice["message"])
        tell_ending(choice, tail)
    for item in value.get("data", ()):
        if isinstance(item, dict) and item.get("embedding") is not None:
            item["embedding"] = encode_vector(item["embedding"], encoding)
    return msgspec.json.encode(value if usage is None else value | {"usage": usage})


def tells_counts(part: bytes) -> bool:
    """Return whether a part of a provider's answer counts anything."""
    return _COUNTED.search(part) is not None


def _counts(usage: Any) -> bool:
    """Return whether usage has a number above zero."""
    if isinstance(usage, dict):
        return any(_counts(value) for value in usage.values())
    return isinstance(usage, int) and usage > 0


def sound_answer(result: Any) -> tuple[str, bytes]:
    """Return the media type and the bytes of a speech answer."""
    headers = getattr(getattr(result, "response", None), "headers", None) or {}
    return str(headers.get("content-type") or _SOUND), bytes(result.content)


def _plain_usage(usage: Any) -> dict[str, Any] | None:
    """Return the usage as an object; a `cost` in it is the provider's stated cost."""
    return usage if isinstance(usage, dict) else None


def translate_error(
    error: Exception,
    status: int | None,
    headers: Mapping[str, str],
    *,
    wall_s: float,
    watched: bool = True,
) -> BackendError | int:
    """Return our error, or the status of a plain refusal (4xx), which is passed on.

    `status` and `headers` are those of the wire: LiteLLM's exceptions map them (529 to 500) and
    often lack them. The exception's values count only if the wire was not `watched`, or if LiteLLM
    refuses before sending.
    """
    name = type(error).__name__
    if status is None or status < 300:
        wire = _wire_error(error, name)
        if wire is not None:
            return wire
        told = getattr(error, "status_code", None)
        if watched and told == OWN_FAILURE:
            words = f"LiteLLM failed ({name}: {root_of(error)})"
            return ServerError(words) if status is None else InvalidResponse(words)
        status = told
    if not isinstance(status, int) or status < 400:
        return _no_answer(status, name)
    message = f"the target answered {status} ({name})"
    if status < 500 and status not in (408, 429):
        return status
    kind = failure_of(status)
    return kind(
        message,
        status=status,
        retry_after_s=parse_retry_after(headers, wall_s=wall_s),
        rate_limit=parse_rate_limit(headers, wall_s=wall_s),
    )


def _no_answer(status: Any, name: str) -> BackendError:
    if isinstance(status, int) and status >= 300:
        return WrongAddress(f"the target answered with a redirect ({status})", status=status)
    return InvalidResponse(f"no answer that could be translated ({name})")


def _wire_error(error: Exception, name: str) -> BackendError | None:
    """Return the socket error among the causes, which LiteLLM reports as a 500, or `None`."""
    for cause in _causes(error):
        if isinstance(cause, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout):
            return UpstreamUnreachable(f"no connection ({name})")
        if isinstance(cause, httpx.ReadError | httpx.RemoteProtocolError):
            return InvalidResponse(f"no whole answer ({name})")
    return None


def root_of(error: BaseException) -> str:
    """Return the type and place of the first failure, without its text."""
    *_, first = _causes(error)
    steps = traceback.extract_tb(first.__traceback__)
    place = f" at {PurePath(steps[-1].filename).name}:{steps[-1].lineno}" if steps else ""
    return f"{type(first).__name__}{place}"


def _causes(error: BaseException) -> Iterable[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def redact(text: str, secrets: Iterable[Secret]) -> str:
    """Return the provider's message without LiteLLM's text around it and without secrets."""
    text = _PREFIX.sub("", text)
    found = re.search(r'"message"\s*:\s*"((?:[^"\\]|\\.)*)"', text)
    if found is not None:
        text = found[1]
    return _SECRET.sub(HIDDEN, strike_out(text, secrets))[:_MESSAGE_LIMIT]


def refusal_body(status: int, message: str, told: bytes = b"") -> bytes:
    """Return an OpenAI error body; details about the gateway's credentials are replaced.

    `told`: the target's own body, of which the parts that may be charged are kept.
    """
    if status in (401, 403):
        message = "the target refused the gateway's credentials"
    kind = {401: "authentication_error", 403: "permission_error", 404: "not_found_error"}
    error = {
        "message": message,
        "type": kind.get(status, "invalid_request_error"),
        "param": None,
        "code": FILTERED if is_filtered(told) else None,
    }
    usage = refusal_usage(told)
    return msgspec.json.encode(
        {"error": error} if usage is None else {"error": error, "usage": usage}
    )

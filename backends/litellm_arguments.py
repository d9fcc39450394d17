"""Arguments for LiteLLM are made here: only what is listed, for its own could redirect a call."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from backends.base import Call
from backends.called_functions import with_call_ids
from backends.errors import RequestUnsendable
from backends.litellm_sound import SOUND_PATHS, form_members
from backends.litellm_text import PARAMETERS
from backends.openai import Credentials

# Google charges for a cache by its hours, which no answer's usage tells; LiteLLM makes one
# of what is marked. Claude there has Anthropic's, whose writes are counted.
_CACHES_BY_THE_HOUR: Final = frozenset({"gemini", "vertex_ai", "vertex_ai_beta"})
_MARKED: Final = ("messages", "tools")
# LiteLLM's function for a path, and its name for such requests.
_FUNCTIONS: Final[Mapping[str, tuple[str, str]]] = {
    "/chat/completions": ("acompletion", "chat_completion"),
    "/completions": ("atext_completion", "chat_completion"),
    "/embeddings": ("aembedding", "embeddings"),
    "/images/generations": ("aimage_generation", "chat_completion"),
    "/audio/speech": ("aspeech", "chat_completion"),
    "/audio/transcriptions": ("atranscription", "transcription"),
    "/moderations": ("amoderation", "chat_completion"),
}
# What every provider is told, each in its own words.
_TRANSLATED: Final = frozenset({
    "model", "messages", "prompt", "input", "stream", "stream_options", "max_tokens",
    "max_completion_tokens", "file",
})  # fmt: skip
_CAP: Final = "max_completion_tokens"
_OLDER_CAP: Final = "max_tokens"
_MODELS_KEPT: Final = 256
# Names that LiteLLM's functions know by another one: its proxy's of agents, and a part of Azure.
_CALLED: Final = {"a2a_agent": "a2a", "azure_speech": "azure/speech"}


class AdapterArguments:
    """Makes the arguments of one provider's calls. `prefix` is LiteLLM's name of it."""

    def __init__(self, prefix: str, credentials: Credentials, base_url: str | None) -> None:
        self._prefix = prefix
        self._credentials = credentials
        self._base_url = base_url
        self._supported: dict[tuple[str, str], frozenset[str] | None] = {}  # by model and path

    def make(self, litellm: Any, call: Call) -> tuple[Callable[..., Any], dict[str, Any]]:
        """Only what is listed reaches LiteLLM: its own arguments could redirect the call."""
        if call.path not in _FUNCTIONS:
            raise RequestUnsendable(f"{self._prefix} is not reached through {call.path}")
        key = self._credentials.api_key
        body = form_members(call) if call.path in SOUND_PATHS else _members(call.body)
        model = f"{_CALLED.get(self._prefix, self._prefix)}/{body['model']}"
        arguments = {name: body[name] for name in PARAMETERS if body.get(name) is not None}
        arguments |= {
            "model": model,
            "api_key": key.reveal() if key is not None else None,
            "api_base": self._base_url,
            "num_retries": 0,
            "max_retries": 0,
            "timeout": 3600.0,  # the gateway's deadlines apply
            "drop_params": True,  # sampling hints only: features are matched before dispatch
        }
        if key is None and self._base_url and self._prefix in litellm.openai_compatible_providers:
            # Its SDK takes no call without a key, and not every server wants one.
            known = litellm.get_llm_provider(model=model, api_base=self._base_url)[2]
            arguments["api_key"] = known or "none"
        if self._credentials.headers:
            arguments["extra_headers"] = {
                name: value.reveal() for name, value in self._credentials.headers.items()
            }
        if self._prefix in _CACHES_BY_THE_HOUR and not _is_claude(body["model"]):
            arguments |= {
                name: without_marks(arguments[name]) for name in _MARKED if name in arguments
            }
        if call.path == "/chat/completions":
            # Otherwise tools make it load, and talk to, servers of tools.
            arguments["_skip_mcp_handler"] = True
            # `auto` is the target's own default; LiteLLM asks Gemini for the dear one instead.
            if body.get("service_tier") not in (None, "auto"):
                arguments["service_tier"] = body["service_tier"]
        supported = self._supported_by(litellm, str(body["model"]), call.path)
        if supported is not None and "functions" not in supported and "messages" in arguments:
            arguments["messages"] = with_call_ids(arguments["messages"])
        if _CAP in arguments and supported is not None and _CAP not in supported:
            _tell_cap(arguments)
        lost = _lost_caps(body, supported)
        call.transmission.ignored = lost + _ignored(call.path, body, arguments, supported)
        if call.stream:
            arguments |= {"stream": True, "stream_options": {"include_usage": True}}
        return getattr(litellm, _FUNCTIONS[call.path][0]), arguments

    def _supported_by(self, litellm: Any, model: str, path: str) -> frozenset[str] | None:
        """Return the members that LiteLLM passes on to a model; `None` where it does not say."""
        if (model, path) not in self._supported and len(self._supported) < _MODELS_KEPT:
            named = litellm.get_supported_openai_params(model, self._prefix, _FUNCTIONS[path][1])
            self._supported[model, path] = None if named is None else frozenset(named)
        return self._supported.get((model, path))


def without_marks(value: Any) -> Any:
    """Return messages or tools without their marks of what to cache."""
    if isinstance(value, list):
        return [without_marks(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {name: without_marks(item) for name, item in value.items() if name != "cache_control"}


def _is_claude(model: Any) -> bool:
    return isinstance(model, str) and "claude" in model.lower()


def _members(text: bytes) -> dict[str, Any]:
    try:
        body = msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.MsgspecError:
        body = {}
    if "model" not in body:
        raise RequestUnsendable("the request has no model")
    return body


def _tell_cap(arguments: dict[str, Any]) -> None:
    """LiteLLM drops a cap whose newer name a provider does not know; the answer would have none."""
    caps = [arguments.pop(_CAP), arguments.get(_OLDER_CAP)]
    arguments[_OLDER_CAP] = min(cap for cap in caps if cap is not None)


def _lost_caps(body: Mapping[str, Any], supported: frozenset[str] | None) -> tuple[str, ...]:
    """Return the caps of an answer that LiteLLM tells nobody of, by any name."""
    caps = [name for name in (_CAP, _OLDER_CAP) if body.get(name) is not None]
    return () if supported is None or {_CAP, _OLDER_CAP} & supported else tuple(caps)


def _ignored(
    path: str,
    body: Mapping[str, Any],
    arguments: Mapping[str, Any],
    supported: frozenset[str] | None,
) -> tuple[str, ...]:
    """Return members of the body that LiteLLM does not pass on to this model."""
    return tuple(sorted(
        name
        for name, value in body.items()
        if value is not None
        and name not in _TRANSLATED
        and (name != "encoding_format" or path != "/embeddings")
        and (name not in arguments or (supported is not None and name not in supported))
    ))  # fmt: skip

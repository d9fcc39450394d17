"""Arguments for LiteLLM, from an allow list: its own arguments could redirect a call."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from backends.allowed_tools import allowed_tools
from backends.base import Call
from backends.called_functions import with_call_ids, with_object_arguments
from backends.errors import RequestDeclined, RequestUnsendable
from backends.litellm_shapes import find_misshapen
from backends.litellm_sound import SOUND_PATHS, form_members
from backends.litellm_text import PARAMETERS
from backends.litellm_thinking import EFFORT, fitting_effort
from backends.openai import Credentials

# Google charges for a cache by the hour, which no usage shows; LiteLLM creates one
# for marked content. Claude on Google has Anthropic's cache, whose writes are counted.
_CACHES_BY_THE_HOUR: Final = frozenset({"gemini", "vertex_ai", "vertex_ai_beta"})
_MARKED: Final = ("messages", "tools")
_CHAT_PATH: Final = "/chat/completions"
# LiteLLM's function for a path, and its name for such requests.
_FUNCTIONS: Final[Mapping[str, tuple[str, str]]] = {
    _CHAT_PATH: ("acompletion", "chat_completion"),
    "/completions": ("atext_completion", "chat_completion"),
    "/embeddings": ("aembedding", "embeddings"),
    "/images/generations": ("aimage_generation", "chat_completion"),
    "/audio/speech": ("aspeech", "chat_completion"),
    "/audio/transcriptions": ("atranscription", "transcription"),
    "/moderations": ("amoderation", "chat_completion"),
}
# Members that every provider supports, each in its own format.
_TRANSLATED: Final = frozenset({
    "model", "messages", "prompt", "input", "stream", "stream_options", "max_tokens",
    "max_completion_tokens", "file",
})  # fmt: skip
_FUNCTIONS_MEMBER: Final = "functions"  # tools in OpenAI's first form
_SOUND: Final = "messages.input_audio"
_DATA_BEGINS: Final = 256  # characters of a sound by which it is known
_CHAT: Final = ("openai", "azure")  # beside those that LiteLLM lists as compatible
_STRICT: Final[Mapping[bytes, str]] = {b'"strict"': "tools.strict"}
_CAP: Final = "max_completion_tokens"
_OLDER_CAP: Final = "max_tokens"
_MODELS_KEPT: Final = 256
# Names that LiteLLM's functions know differently: its proxy for agents, and a part of Azure.
_CALLED: Final = {"a2a_agent": "a2a", "azure_speech": "azure/speech"}


class AdapterArguments:
    """Builder of arguments for one provider's calls. `prefix` is LiteLLM's name of it."""

    def __init__(self, prefix: str, credentials: Credentials, base_url: str | None) -> None:
        self._prefix = prefix
        self._credentials = credentials
        self._base_url = base_url
        self._supported: dict[tuple[str, str], frozenset[str] | None] = {}  # by model and path

    def make(self, litellm: Any, call: Call) -> tuple[Callable[..., Any], dict[str, Any]]:
        """Return LiteLLM's function and arguments for a call. Only listed members are passed.

        Raises `RequestUnsendable` for a path that the provider is not called by.
        """
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
            # The SDK requires a key, even for servers that need none.
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
        if call.path == _CHAT_PATH:
            # Otherwise LiteLLM would load tool servers and connect to them.
            arguments["_skip_mcp_handler"] = True
            # `auto` is the target's default; LiteLLM would request the expensive one from Gemini.
            if body.get("service_tier") not in (None, "auto"):
                arguments["service_tier"] = body["service_tier"]
        self._fit(litellm, call, body, arguments)
        if call.stream:
            arguments |= {"stream": True, "stream_options": {"include_usage": True}}
        return getattr(litellm, _FUNCTIONS[call.path][0]), arguments

    def _fit(
        self, litellm: Any, call: Call, body: dict[str, Any], arguments: dict[str, Any]
    ) -> None:
        """Tell the model what it knows in the words that it knows, and name what is left out."""
        supported = self._supported_by(litellm, str(body["model"]), call.path)
        if body.get(_FUNCTIONS_MEMBER) and _FUNCTIONS_MEMBER not in (supported or ()):
            words = "the target does not support it. Offer them as `tools`."
            raise call.transmission.judge(_declined(_FUNCTIONS_MEMBER, words))
        if self._prefix not in (*_CHAT, *litellm.openai_compatible_providers):
            _translate(call, body, arguments)
        if supported is not None and _FUNCTIONS_MEMBER not in supported and "messages" in arguments:
            arguments["messages"] = with_call_ids(arguments["messages"])
        if _CAP in arguments and supported is not None and _CAP not in supported:
            _tell_cap(arguments)
        if EFFORT in arguments:
            arguments[EFFORT] = fitting_effort(litellm, self._prefix, body, (_CAP, _OLDER_CAP))
        lost = _lost_caps(body, supported)
        call.transmission.ignored = lost + _ignored(call.path, body, arguments, supported)
        call.transmission.expected = _expected(body)

    def _supported_by(self, litellm: Any, model: str, path: str) -> frozenset[str] | None:
        """Return the members that LiteLLM passes on to a model; `None` if it does not say."""
        if (model, path) not in self._supported and len(self._supported) < _MODELS_KEPT:
            named = litellm.get_supported_openai_params(model, self._prefix, _FUNCTIONS[path][1])
            self._supported[model, path] = None if named is None else frozenset(named)
        return self._supported.get((model, path))


def _translate(call: Call, body: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Tell what a provider with an API of its own is asked in the forms that LiteLLM translates.

    Raises the refusal of what it fails at, which names the member.
    """
    fault: tuple[str, str] | None = None
    if call.path == _CHAT_PATH:
        fault = find_misshapen(body)
    for place, tool in enumerate(_objects(body.get("tools"))):
        if "custom" in tool:
            fault = fault or (
                f"tools[{place}]",
                "the target supports only tools of type `function`.",
            )
    allowed = allowed_tools(body.get("tools"), body.get("tool_choice"))
    if allowed is not None and not allowed.tools:
        fault = fault or ("tool_choice", "names none of the request's functions.")
    if fault is not None:
        raise call.transmission.judge(_declined(*fault))
    if allowed is not None:
        arguments |= {"tools": allowed.tools, "tool_choice": allowed.mode}
    if "messages" in arguments:
        arguments["messages"] = with_object_arguments(arguments["messages"])


def without_marks(value: Any) -> Any:
    """Return messages or tools without their `cache_control` marks."""
    if isinstance(value, list):
        return [without_marks(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {name: without_marks(item) for name, item in value.items() if name != "cache_control"}


def _is_claude(model: Any) -> bool:
    return isinstance(model, str) and "claude" in model.lower()


def _objects(listed: Any) -> list[dict[str, Any]]:
    """Return the list with an empty object in place of what is none."""
    found = listed if isinstance(listed, list) else []
    return [each if isinstance(each, dict) else {} for each in found]


def _expected(body: Mapping[str, Any]) -> dict[bytes, str]:
    """Return what LiteLLM leaves out for some providers without a word, by its words in a body."""
    functions = [tool.get("function") for tool in _objects(body.get("tools"))]
    strict = any(isinstance(each, dict) and each.get("strict") is True for each in functions)
    contents = [entry.get("content") for entry in _objects(body.get("messages"))]
    parts = [
        part for content in contents if isinstance(content, list) for part in _objects(content)
    ]
    sounds = [part.get("input_audio") for part in parts]
    data = [sound.get("data") for sound in sounds if isinstance(sound, dict)]
    heard = {each[:_DATA_BEGINS].encode(): _SOUND for each in data if isinstance(each, str)}
    return (dict(_STRICT) if strict else {}) | heard


def _members(text: bytes) -> dict[str, Any]:
    try:
        body = msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.MsgspecError:
        body = {}
    if "model" not in body:
        raise RequestUnsendable("the request has no model")
    return body


def _declined(member: str, why: str) -> RequestDeclined:
    """Return a refusal of what LiteLLM fails at, or leaves out though it changes the answer."""
    declined = RequestDeclined("the target's API has no form for it", status=400)
    shown = {"message": f"`{member}`: {why}", "type": "invalid_request_error", "param": member}
    declined.body = msgspec.json.encode({"error": shown})
    return declined


def _tell_cap(arguments: dict[str, Any]) -> None:
    """Pass the lowest token limit by its older name, since LiteLLM may drop the newer one."""
    caps = [arguments.pop(_CAP), arguments.get(_OLDER_CAP)]
    arguments[_OLDER_CAP] = min(cap for cap in caps if cap is not None)


def _lost_caps(body: Mapping[str, Any], supported: frozenset[str] | None) -> tuple[str, ...]:
    """Return the token limits of a request that LiteLLM passes on under neither name."""
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
        and (name not in arguments or (supported is not None and name not in supported)
             or (name == EFFORT and arguments[name] != value))
    ))  # fmt: skip

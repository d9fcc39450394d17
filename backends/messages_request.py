"""Conversion of chat completion requests to Anthropic Messages. No I/O.

A member without a Messages equivalent is refused by name if it would change the answer, and else
reported as ignored. Cache marks stay in place. An instruction inside the conversation becomes part
of the user's turn. `thinking`, `output_config` and other members that chat clients send to
Anthropic are passed on.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from backends.allowed_tools import allowed_tools
from backends.messages_moved import lacks_thought
from backends.messages_turns import MARK, MessagesTurns, NoMessagesForm, mark_of

__all__ = ["MessagesBody", "NoMessagesForm", "messages_request"]

DEFAULT_MAX_TOKENS: Final = 8192  # of a request without a limit, at a model of unknown limits
LEAST_THINKING: Final = 1024  # tokens, by Anthropic's documents
_BUDGETS: Final = {"minimal": 1024, "low": 1024, "medium": 4096, "high": 16384, "xhigh": 32768}
_EFFORTS: Final = {"minimal": "low", "low": "low", "medium": "medium", "high": "high",
                   "xhigh": "max", "max": "max"}  # fmt: skip
_CHOICES: Final = {"auto": "auto", "required": "any", "none": "none"}
# Members with the same name in Messages.
_SAME: Final = (
    "stream", "top_p", "top_k", "thinking", "output_config", "context_management", "mcp_servers",
    "cache_control",
)  # fmt: skip
_READ: Final = frozenset((
    *_SAME, "model", "messages", "max_tokens", "max_completion_tokens", "temperature", "stop",
    "tools", "tool_choice", "parallel_tool_calls", "response_format", "reasoning_effort",
    "stream_options", "web_search_options", "n", "logprobs", "top_logprobs", "modalities", "store",
    "service_tier",
))  # fmt: skip
_REFUSED: Final = ("functions", "function_call", "audio", "container")
_READ_OF_TOOLS: Final = frozenset(("type", "function", MARK))
_READ_OF_FUNCTIONS: Final = frozenset(("name", "description", "parameters", "strict", MARK))
_NOTHING: Final[tuple[Any, ...]] = (None, False, [], {}, "")
_TIERS: Final = {"auto": "auto", "default": "standard_only", "standard_only": "standard_only"}
_VERSION: Final = re.compile(r"claude-(?:[a-z]+-)?(\d+)(?:[-.](\d{1,2}))?(?=$|[-@:])")
_EFFORT_SINCE: Final = (4, 6)  # models that choose their thinking's length themselves


class MessagesBody(NamedTuple):
    """A converted body. `ignored`: members of chat that it lacks."""

    body: bytes
    ignored: tuple[str, ...]


def messages_request(body: bytes) -> MessagesBody:
    """Return the request in Messages.

    Raises `NoMessagesForm` for a member that would change the answer and has no equivalent.
    """
    try:
        asked = msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise NoMessagesForm("body", "the body cannot be read.") from None
    _refuse(asked)
    turns = MessagesTurns.read(asked.get("messages")).with_user_turn()
    limit = asked.get("max_completion_tokens") or asked.get("max_tokens") or DEFAULT_MAX_TOKENS
    made: dict[str, Any] = {"model": asked.get("model"), "max_tokens": limit}
    left = {name for name, value in asked.items() if name not in _READ and value not in _NOTHING}
    left |= turns.ignored
    if turns.system:
        made["system"] = turns.system
    made["messages"] = turns.messages
    made |= {name: asked[name] for name in _SAME if asked.get(name) is not None}
    made |= _tools(asked)
    left |= _untold_of_tools(asked)
    for part in (_stops, _temperature, _format, _thinking, _tier):
        left.update(part(asked, made))
    return MessagesBody(msgspec.json.encode(made), tuple(sorted(left)))


def _tier(asked: Mapping[str, Any], made: dict[str, Any]) -> Iterator[str]:
    """Set the service tier, or yield its member if Messages have no such tier."""
    tier = asked.get("service_tier")
    word = _TIERS.get(tier) if isinstance(tier, str) else None
    if word is not None:
        made["service_tier"] = word
    elif tier not in _NOTHING:
        yield "service_tier"


def _refuse(asked: Mapping[str, Any]) -> None:
    for name in _REFUSED:
        if asked.get(name) not in _NOTHING:
            fix = "Offer them as `tools`." if name == "functions" else "Leave it out."
            raise NoMessagesForm(name, f"the Messages API does not support it. {fix}")
    if asked.get("n") not in (None, 1):
        raise NoMessagesForm("n", "the Messages API returns one choice. Leave it out.")
    if asked.get("logprobs") or asked.get("top_logprobs"):
        raise NoMessagesForm(
            "logprobs", "the Messages API returns no log probabilities. Leave it out."
        )
    if any(medium != "text" for medium in asked.get("modalities") or ()):
        raise NoMessagesForm("modalities", "the Messages API returns only text. Leave it out.")


def _offered(asked: Mapping[str, Any]) -> tuple[list[dict[str, Any]], Any]:
    """Return the tools to offer, and the choice among them: Messages choose among all tools."""
    choice, given = asked.get("tool_choice"), asked.get("tools") or ()
    tools = [_tool(tool, f"tools[{number}]") for number, tool in enumerate(given)]
    allowed = allowed_tools(given, choice)
    if allowed is None:
        search = asked.get("web_search_options")
        return [*tools, *([_search(search)] if isinstance(search, dict) else ())], choice
    if not allowed.tools:
        raise NoMessagesForm("tool_choice", "names none of the request's functions.")
    return [_tool(tool, "tools") for tool in allowed.tools], allowed.mode


def _tools(asked: Mapping[str, Any]) -> dict[str, Any]:
    tools, choice = _offered(asked)
    if not tools:
        return {}
    made: dict[str, Any] = {"tools": tools}
    if isinstance(choice, dict):
        name = (choice.get("function") or {}).get("name")
        if choice.get("type") != "function" or not isinstance(name, str):
            raise NoMessagesForm("tool_choice", "only a function can be chosen.")
        made["tool_choice"] = {"type": "tool", "name": name}
    elif choice is not None:
        if choice not in _CHOICES:
            raise NoMessagesForm("tool_choice", "must be `auto`, `required`, `none` or a function.")
        made["tool_choice"] = {"type": _CHOICES[choice]}
    if asked.get("parallel_tool_calls") is False:
        chosen = made.setdefault("tool_choice", {"type": "auto"})
        if chosen["type"] != "none":
            chosen["disable_parallel_tool_use"] = True
    return made


def _tool(tool: Any, place: str) -> dict[str, Any]:
    function = tool.get("function") if isinstance(tool, dict) else None
    if not isinstance(function, dict):
        raise NoMessagesForm(place, "the Messages API supports only tools of type `function`.")
    schema = function.get("parameters") or {"type": "object", "properties": {}}
    made = {"name": function.get("name"), "input_schema": schema}
    for name in ("description", "strict"):
        if function.get(name) is not None:
            made[name] = function[name]
    return {**made, **mark_of(tool), **mark_of(function)}


def _untold_of_tools(asked: Mapping[str, Any]) -> set[str]:
    """Return the members of tools, all of which were converted, that Messages do not get."""
    return {
        f"tools.{name}"
        for tool in asked.get("tools") or ()
        for members, read in ((tool, _READ_OF_TOOLS), (tool["function"], _READ_OF_FUNCTIONS))
        for name, value in members.items()
        if value and name not in read
    }


def _search(options: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "web_search_20250305", "name": "web_search"}
    where = options.get("user_location")
    if isinstance(where, dict):
        near = where.get("approximate")
        made["user_location"] = {"type": "approximate", **(near if isinstance(near, dict) else {})}
    return made


def _stops(asked: Mapping[str, Any], made: dict[str, Any]) -> Iterator[str]:
    """Set stop texts without blank ones, which Messages refuse; yield the member if changed."""
    given = asked.get("stop") or []
    texts = [given] if isinstance(given, str) else given
    kept = [text for text in texts if not isinstance(text, str) or text.strip()]
    if kept:
        made["stop_sequences"] = kept
    if len(kept) < len(texts):
        yield "stop"


def _temperature(asked: Mapping[str, Any], made: dict[str, Any]) -> Iterator[str]:
    """Set the temperature, at most 1 in Messages and 2 in chat; yield the member if cut."""
    value = asked.get("temperature")
    if value is None:
        return
    made["temperature"] = value
    if isinstance(value, int | float) and value > 1:
        made["temperature"] = 1
        yield "temperature"


def _format(asked: Mapping[str, Any], made: dict[str, Any]) -> Iterator[str]:
    shape = asked.get("response_format")
    if not isinstance(shape, dict) or shape.get("type") in (None, "text"):
        return
    inner = shape.get("json_schema")
    if shape.get("type") == "json_schema" and isinstance(inner, dict) and inner.get("schema"):
        told = {"type": "json_schema", "schema": inner["schema"]}
        made["output_config"] = {**(made.get("output_config") or {}), "format": told}
    else:
        yield "response_format"


def _thinking(asked: Mapping[str, Any], made: dict[str, Any]) -> Iterator[str]:
    """Set thinking for a reasoning effort, and yield the members that cannot be kept."""
    effort = asked.get("reasoning_effort")
    if effort is None or "thinking" in made:
        return
    if effort == "none":
        made["thinking"] = {"type": "disabled"}
        return
    forced = (made.get("tool_choice") or {}).get("type") in ("any", "tool")
    if effort not in _EFFORTS or forced:
        yield "reasoning_effort"
        return
    if _chooses_itself(str(asked.get("model"))):
        made["thinking"] = {"type": "adaptive"}
        made["output_config"] = {**(made.get("output_config") or {}), "effort": _EFFORTS[effort]}
    else:
        budget = min(_BUDGETS.get(effort, _BUDGETS["xhigh"]), made["max_tokens"] - 1)
        if budget < LEAST_THINKING or lacks_thought(made["messages"]):
            yield "reasoning_effort"
            return
        made["thinking"] = {"type": "enabled", "budget_tokens": budget}
    if made.get("temperature") not in (None, 1):
        del made["temperature"]
        yield "temperature"


def _chooses_itself(model: str) -> bool:
    match = _VERSION.search(model.lower())
    return match is not None and (int(match[1]), int(match[2] or 0)) >= _EFFORT_SINCE

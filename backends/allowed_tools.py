"""Tool choices of type `allowed_tools`, for targets that choose among all tools of a request.

vLLM, SGLang, Anthropic and LiteLLM's translations have no such choice: they get the tools that it
allows, and its mode.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

ALLOWED: Final = "allowed_tools"
_NAMED: Final = ("function", "custom")


class AllowedTools(NamedTuple):
    """The tools that a choice allows, and the choice among them."""

    tools: list[Any]
    mode: Any


def allowed_tools(tools: Any, choice: Any) -> AllowedTools | None:
    """Return what a choice of type `allowed_tools` allows; None for another choice."""
    if not isinstance(choice, Mapping) or choice.get("type") != ALLOWED:
        return None
    given = choice.get(ALLOWED)
    wanted = given if isinstance(given, Mapping) else choice
    names = _names(wanted.get("tools"))
    offered = tools if isinstance(tools, Sequence) and not isinstance(tools, str) else ()
    found = [tool for tool in offered if not names.isdisjoint(_names([tool]))]
    return AllowedTools(found, wanted.get("mode") or "auto")


def _names(tools: Any) -> set[str]:
    """Return the names of tools in chat's form."""
    inner = (
        tool.get(kind)
        for tool in (tools if isinstance(tools, list) else ())
        if isinstance(tool, Mapping)
        for kind in _NAMED
    )
    named = (part.get("name") for part in inner if isinstance(part, Mapping))
    return {name for name in named if isinstance(name, str)}

"""The tools of a Responses request as chat's functions, and what a call of each is told as.

Functions, custom tools, namespaces of both, and every tool that the client runs. Tools may stand
in `tools`, in items of the input (`additional_tools`) and in what a search came to. What runs at
OpenAI is refused by its place; a search of the web that is offered beside others is left out and
named, as agents offer it with whatever they ask.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from gateway.errors import invalid_error
from gateway.http.body import Members, encode_raw
from gateway.request.dialects.client_tools import CLIENT_TOOLS, CUSTOM, SCREEN, function_of
from gateway.request.dialects.fields import (
    decode_whole_member,
    iterate_objects,
    mapping,
    optional_text,
    text,
    type_of,
    unsupported,
)

SEARCH: Final = "web_search"  # `web_search_preview`, and with the day it came
FUNCTION, NAMESPACE = "function", "namespace"
_BRINGING: Final = ("additional_tools", "tool_search_output")  # items that bring tools
_READ: Final = frozenset((
    "type", "name", "description", "parameters", "strict", "format", "execution", *SCREEN,
))  # fmt: skip
_SPACE: Final = frozenset(("type", "name", "tools"))
_LOCAL: Final = {"type": "local"}  # where a shell runs: at the client, as every tool here
_OWN: Final = frozenset((FUNCTION, NAMESPACE, CUSTOM, *CLIENT_TOOLS))


class CalledTool(NamedTuple):
    """A tool as the client knows it; `kind` is its type."""

    kind: str
    name: str
    namespace: str | None = None


class DeclaredTool(NamedTuple):
    """A tool as chat is told it, and what it is to the client."""

    function: dict[str, Any]
    origin: CalledTool
    left_out: tuple[str, ...] = ()  # members that chat has no form for


def flat_name(namespace: str | None, name: str) -> str:
    """Chat has no namespaces: a function of one has both in its name."""
    return name if namespace is None else f"{namespace}__{name}"


class DeclaredTools(list[DeclaredTool]):
    """Tools, and `left_out`: names of what is declared and told to no target."""

    def __init__(self, tools: Iterable[DeclaredTool], left_out: Iterable[str]) -> None:
        super().__init__(tools)
        self.left_out = frozenset(left_out).union(*(tool.left_out for tool in self))


def declared_tools(members: Members, items: Any) -> DeclaredTools:
    """Return every tool that the request declares, the last of each name.

    `items`: its input. Raises `RequestError` with the place of a tool that cannot be offered.
    """
    places = [("tools", decode_whole_member(members, "tools"))]
    for index, item in enumerate(items if isinstance(items, list) else ()):
        if isinstance(item, dict) and item.get("type") in _BRINGING:
            places.append((f"input[{index}].tools", item.get("tools")))
    given = [
        (place, tool)
        for where, tools in places
        if tools is not None
        for place, tool in iterate_objects(tools, where)
    ]
    beside = any(str(tool.get("type")) in _OWN for _, tool in given)
    found: dict[str, DeclaredTool] = {}
    left: set[str] = set()
    for place, tool in given:
        if beside and str(tool.get("type")).startswith(SEARCH):
            left.add(f"tools.{SEARCH}")
            continue
        if _is_needless(tool):
            left.add(f"tools.{tool['type']}")
            continue
        for declared in _declared(tool, place):
            found[str(declared.function["name"])] = declared
    return DeclaredTools(found.values(), left)


def tool_members(members: Members, tools: Sequence[DeclaredTool]) -> Members:
    """Return chat's `tools` and `tool_choice`."""
    if not tools:  # there is nothing to choose from, and chat refuses to choose
        return {}
    choice = decode_whole_member(members, "tool_choice")
    offered = list(tools)
    told: Any = choice
    if choice is not None and not isinstance(choice, str):
        chosen = mapping(choice, "tool_choice")
        if chosen.get("type") == "allowed_tools":
            offered = _allowed(tools, chosen)
            told = chosen.get("mode") or "auto"
        else:
            name = _chosen_name(tools, chosen, "tool_choice")
            told = {"type": FUNCTION, "function": {"name": name}}
    found: dict[str, Any] = {
        "tools": [{"type": FUNCTION, "function": tool.function} for tool in offered]
    }
    if told is not None:
        found["tool_choice"] = told
    return {name: encode_raw(value) for name, value in found.items()}


def _declared(tool: Mapping[str, Any], place: str) -> Iterator[DeclaredTool]:
    kind = type_of(tool, place)
    if kind == NAMESPACE:
        space = text(tool.get("name"), f"{place}.name")
        for inner, entry in iterate_objects(tool.get("tools"), f"{place}.tools"):
            for declared in _declared(entry, inner):
                name = str(declared.function["name"])
                flat = {**declared.function, "name": flat_name(space, name)}
                yield DeclaredTool(
                    flat,
                    declared.origin._replace(namespace=space),
                    (*declared.left_out, *_untold(tool, f"tools.{NAMESPACE}", _SPACE)),
                )
    elif _is_needless(tool):
        return
    elif _runs_in_a_container(tool):
        raise unsupported(
            f"{place}.environment",
            "a container is one of OpenAI's own service, which does not serve this request. Say "
            '`{"type": "local"}` and run the calls at the client, or leave the tool out.',
        )
    elif kind == CUSTOM or kind in CLIENT_TOOLS:
        function = function_of(tool, place)
        called = CalledTool(str(kind), function["name"])
        yield DeclaredTool(function, called, _untold(tool, "tools"))
    else:
        function = _function(tool, place)
        called = CalledTool(FUNCTION, function["name"])
        yield DeclaredTool(function, called, _untold(tool, "tools"))


def _is_needless(tool: Mapping[str, Any]) -> bool:
    """Whether it is OpenAI's search for tools: every tool is declared to a target."""
    return tool.get("type") == "tool_search" and tool.get("execution") != "client"


def _runs_in_a_container(tool: Mapping[str, Any]) -> bool:
    """Whether OpenAI runs a shell's calls: its client would wait and run none of them."""
    where = tool.get("environment")
    kind = where.get("type") if isinstance(where, Mapping) else None
    return tool.get("type") == "shell" and str(kind).startswith("container")


def _untold(tool: Mapping[str, Any], where: str, read: Container[str] = _READ) -> tuple[str, ...]:
    """Return the names of what a tool's declaration says and chat has no form for."""
    return tuple(
        f"{where}.{name}"
        for name, value in tool.items()
        if value and name not in read and not (name == "environment" and value == _LOCAL)
    )


def _function(tool: Mapping[str, Any], place: str) -> dict[str, Any]:
    kind = type_of(tool, place)
    if kind != FUNCTION:
        raise unsupported(
            place,
            f"tools of type `{kind}` run at OpenAI's own service, which does not serve this "
            "request. Declare a `function` or a `custom` tool, or leave it out.",
        )
    function: dict[str, Any] = {"name": text(tool.get("name"), f"{place}.name")}
    optional_text(tool.get("description"), f"{place}.description")
    if tool.get("parameters") is not None:
        mapping(tool["parameters"], f"{place}.parameters")
    for name in ("description", "parameters", "strict"):
        if tool.get(name) is not None:
            function[name] = tool[name]
    return function


def _allowed(tools: Sequence[DeclaredTool], choice: Mapping[str, Any]) -> list[DeclaredTool]:
    """Return the tools that the choice allows: chat chooses among all that it is told."""
    allowed: set[str] = set()
    for place, wanted in iterate_objects(choice.get("tools"), "tool_choice.tools"):
        if wanted.get("type") == NAMESPACE:
            space = text(wanted.get("name"), f"{place}.name")
            allowed |= {
                str(tool.function["name"]) for tool in tools if tool.origin.namespace == space
            }
        elif str(wanted.get("type")) in _OWN:
            allowed.add(_chosen_name(tools, wanted, place))
    found = [tool for tool in tools if tool.function["name"] in allowed]
    if not found:
        raise invalid_error("tool_choice.tools", "names none of the tools that are offered.")
    return found


def _chosen_name(tools: Sequence[DeclaredTool], choice: Mapping[str, Any], place: str) -> str:
    """Return the function that a choice names; raises `RequestError` for none."""
    kind = type_of(choice, place)
    if kind not in _OWN:
        raise unsupported(place, f"a choice of type `{kind}` is not made here.")
    name = kind if kind in CLIENT_TOOLS else text(choice.get("name"), f"{place}.name")
    space = optional_text(choice.get("namespace"), f"{place}.namespace")
    for tool in tools:
        if tool.origin.name == name and (space is None or tool.origin.namespace == space):
            return str(tool.function["name"])
    if kind == FUNCTION:  # the target says what it thinks of a name that is not there
        return flat_name(space, str(name))
    raise invalid_error(place, f"`{name}` is none of the tools that are offered.")

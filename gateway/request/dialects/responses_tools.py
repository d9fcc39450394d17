"""Tools of a Responses request as chat functions, and the client's form of their calls.

They are functions, custom tools, namespaces of both, and the tools that the client runs. Tools may
be in `tools`, in input items (`additional_tools`) and in results of a search. Tools that run at
OpenAI are refused by their place. A web search among other tools is left out and named, as agents
offer it with every request.
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

SEARCH: Final = "web_search"  # also `web_search_preview`, and names with a date
FUNCTION, NAMESPACE = "function", "namespace"
_BRINGING: Final = ("additional_tools", "tool_search_output")  # items with tools
_READ: Final = frozenset((
    "type", "name", "description", "parameters", "strict", "format", "execution", *SCREEN,
))  # fmt: skip
_SPACE: Final = frozenset(("type", "name", "tools"))
_LOCAL: Final = {"type": "local"}  # a shell runs at the client, as every tool here
_OWN: Final = frozenset((FUNCTION, NAMESPACE, CUSTOM, *CLIENT_TOOLS))


class CalledTool(NamedTuple):
    """A tool as the client knows it; `kind` is its type."""

    kind: str
    name: str
    namespace: str | None = None


class DeclaredTool(NamedTuple):
    """A tool as declared to chat, and as the client knows it."""

    function: dict[str, Any]
    origin: CalledTool
    left_out: tuple[str, ...] = ()  # members that chat has no form for


def flat_name(namespace: str | None, name: str) -> str:
    """Return a function's name with its namespace, since chat has no namespaces."""
    return name if namespace is None else f"{namespace}__{name}"


class DeclaredTools(list[DeclaredTool]):
    """Declared tools; `left_out` names what is declared and reaches no target."""

    def __init__(self, tools: Iterable[DeclaredTool], left_out: Iterable[str]) -> None:
        super().__init__(tools)
        self.left_out = frozenset(left_out).union(*(tool.left_out for tool in self))


def declared_tools(members: Members, items: Any) -> DeclaredTools:
    """Return all tools that the request declares, the last of each name.

    `items` is its input. Raises `RequestError` for a tool that cannot be offered.
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
    if not tools:  # chat refuses a choice without tools
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
    """Return whether the tool is OpenAI's tool search, needless as all tools are declared."""
    return tool.get("type") == "tool_search" and tool.get("execution") != "client"


def _runs_in_a_container(tool: Mapping[str, Any]) -> bool:
    """Return whether OpenAI would run a shell's calls, so that the client ran none of them."""
    where = tool.get("environment")
    kind = where.get("type") if isinstance(where, Mapping) else None
    return tool.get("type") == "shell" and str(kind).startswith("container")


def _untold(tool: Mapping[str, Any], where: str, read: Container[str] = _READ) -> tuple[str, ...]:
    """Return the names of members of a tool's declaration that chat has no form for."""
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
    """Return the tools that the choice allows, as chat chooses among all declared ones."""
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
        raise invalid_error("tool_choice.tools", "must name one of the request's `tools`.")
    return found


def _chosen_name(tools: Sequence[DeclaredTool], choice: Mapping[str, Any], place: str) -> str:
    """Return the function that a choice names. Raises `RequestError` if there is none."""
    kind = type_of(choice, place)
    if kind not in _OWN:
        raise unsupported(
            place,
            f"a choice of type `{kind}` is not supported. Use `auto`, `none`, `required` "
            "or a function.",
        )
    name = kind if kind in CLIENT_TOOLS else text(choice.get("name"), f"{place}.name")
    space = optional_text(choice.get("namespace"), f"{place}.namespace")
    for tool in tools:
        if tool.origin.name == name and (space is None or tool.origin.namespace == space):
            return str(tool.function["name"])
    if kind == FUNCTION:  # the target reports an unknown name
        return flat_name(space, str(name))
    raise invalid_error(place, f"`{name}` is not one of the request's `tools`.")

"""Tools of Anthropic's Messages as functions of chat.

Tools that the client runs (shell, editor, memory, computer) have no schema in a request, as the
service knows it. A registry has it here, by the tool's name without its date. A search for tools is
left out, since chat gets every tool. Tools that run at Anthropic are refused.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from gateway.request.dialects.conversation import MARK, with_cache_mark
from gateway.request.dialects.fields import (
    iterate_objects,
    mapping,
    optional_text,
    text,
    type_of,
    unsupported,
)

_TEXT: Final = {"type": "string"}
_NUMBER: Final = {"type": "integer"}
_POINT: Final = {"type": "array", "items": _NUMBER, "minItems": 2, "maxItems": 2}
_RANGE: Final = {**_POINT, "description": "First and last line; -1 is the end."}
_EDITS: Final = ("view", "create", "str_replace", "insert")
_READ: Final = frozenset(("type", "name", "description", "input_schema", "strict", MARK))
_SEARCH: Final = "tool_search_tool_"


class ClientToolForm(NamedTuple):
    """The declaration of a client's tool to a model; `members` go into the description."""

    description: str
    parameters: dict[str, Any]
    members: tuple[str, ...] = ()


class MessagesTool(NamedTuple):
    """A tool as chat's function; `marked` is the function with its cache mark."""

    name: str
    function: dict[str, Any]
    marked: dict[str, Any]
    left_out: tuple[str, ...]


def _schema(required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [required]}


def _edits(*commands: str, **more: Any) -> dict[str, Any]:
    return _schema(
        "command", command={"enum": list(commands)}, path=_TEXT, file_text=_TEXT, old_str=_TEXT,
        new_str=_TEXT, insert_line=_NUMBER, insert_text=_TEXT, view_range=_RANGE, **more,
    )  # fmt: skip


_ACTIONS: Final = (
    "key", "type", "mouse_move", "left_click", "left_click_drag", "right_click", "middle_click",
    "double_click", "triple_click", "left_mouse_down", "left_mouse_up", "hold_key", "scroll",
    "wait", "screenshot", "cursor_position", "zoom",
)  # fmt: skip
CLIENT_TOOLS: Final[Mapping[str, ClientToolForm]] = {
    "bash": ClientToolForm(
        "Run a command in a shell that stays open between calls, and get its output. `restart` "
        "begins a new one.",
        {"type": "object", "properties": {"command": _TEXT, "restart": {"type": "boolean"}}},
    ),
    "text_editor": ClientToolForm(
        "View, create and edit text files. `str_replace` replaces the one place where `old_str` "
        "stands by `new_str`; `insert` puts `insert_text` behind the line `insert_line`.",
        _edits(*_EDITS, "undo_edit"),
    ),
    "memory": ClientToolForm(
        "Keep notes from one conversation to the next as files below /memories: view, create, "
        "str_replace, insert, delete, rename (`old_path` to `new_path`). Look into it first.",
        _edits(*_EDITS, "delete", "rename", old_path=_TEXT, new_path=_TEXT),
    ),
    "computer": ClientToolForm(
        "Use a computer's screen, mouse and keyboard, and get screenshots of what it shows.",
        _schema(
            "action", action={"enum": list(_ACTIONS)}, coordinate=_POINT, start_coordinate=_POINT,
            text=_TEXT, scroll_direction={"enum": ["up", "down", "left", "right"]},
            scroll_amount=_NUMBER, duration={"type": "number"}, region={
                "type": "array", "items": _NUMBER, "minItems": 4, "maxItems": 4,
            },
        ),
        ("display_width_px", "display_height_px", "display_number"),
    ),
}  # fmt: skip


def declared_tools(
    given: Any, added: Sequence[tuple[str, Mapping[str, Any]]], removed: set[str]
) -> list[MessagesTool]:
    """Return the tools of a request, with those that its conversation added and not removed."""
    listed = [*([] if given is None else iterate_objects(given, "tools")), *added]
    read = [tool for place, entry in listed if (tool := _read(entry, place)) is not None]
    by_name = {tool.name: tool for tool in read if tool.name not in removed}
    return list(by_name.values())


def searches_tools(given: Any, added: Sequence[tuple[str, Mapping[str, Any]]]) -> bool:
    """Return whether a search for tools is declared or added by a turn; chat does not get it."""
    entries = [*(given if isinstance(given, list) else ()), *(tool for _, tool in added)]
    return any(str(tool.get("type")).startswith(_SEARCH) for tool in entries)


def _read(tool: Mapping[str, Any], place: str) -> MessagesTool | None:
    kind = type_of(tool, place)
    if kind is not None and kind.startswith(_SEARCH):
        return None
    form, told = None, optional_text(tool.get("description"), f"{place}.description")
    if kind not in (None, "custom"):
        form = _client_form(str(kind))
        if form is None:
            raise unsupported(
                place,
                f"tools of type `{kind}` belong to Anthropic's own service. Declare a tool with an "
                "`input_schema`, or leave it out.",
            )
        told = " ".join((told or form.description, *_described(tool, form)))
    name = text(tool.get("name"), f"{place}.name")
    schema = tool.get("input_schema") if form is None else form.parameters
    function: dict[str, Any] = {
        "name": name,
        "parameters": mapping(schema, f"{place}.input_schema"),
    }
    if told is not None:
        function["description"] = told
    if tool.get("strict") is True:
        function["strict"] = True
    read = _READ.union(() if form is None else form.members)
    left = (f"tools.{member}" for member, value in tool.items() if value and member not in read)
    whole = {"type": "function", "function": function}
    return MessagesTool(name, whole, with_cache_mark(whole, tool), tuple(left))


def runs_at_service(tool: Mapping[str, Any], place: str) -> bool:
    """Return whether a tool's type cannot be offered to a model by the gateway."""
    kind = type_of(tool, place)
    plain = kind in (None, "custom") or str(kind).startswith(_SEARCH)
    return not plain and _client_form(str(kind)) is None


def _client_form(kind: str) -> ClientToolForm | None:
    """Return the form of a client's tool by its name without the date, as `bash_20250124`."""
    name, _, date = kind.rpartition("_")
    return CLIENT_TOOLS.get(name) if date.isdecimal() else None


def _described(tool: Mapping[str, Any], form: ClientToolForm) -> list[str]:
    return [f"{name}: {tool[name]}." for name in form.members if tool.get(name) is not None]

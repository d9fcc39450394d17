"""Tools of OpenAI's Responses that the client runs, declared to chat as functions.

It is a registry: the entry of each type has its declaration for a model, the conversion of its
calls, and the text of its output. Custom tools take one text and are named by the client.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from gateway.request.dialects.conversation import Message, image_part, text_part
from gateway.request.dialects.fields import mapping, optional_text, text, unsupported

Arguments = Mapping[str, Any]
CUSTOM: Final = "custom"
INPUT: Final = "input"  # the only argument of a custom tool as a function
SCREEN: Final = ("display_width", "display_height")  # of a computer, in pixels
_TEXT: Final = {"type": "string"}
_NUMBER: Final = {"type": "integer"}
_TEXTS: Final = {"type": "array", "items": _TEXT}


class ClientTool(NamedTuple):
    """A type of tool. `call` is the item type of its calls, `output` that of their results.

    `member` is the member of a call that has the model's arguments. `read` makes this member from
    the arguments, `write` the arguments from this member.
    """

    type: str
    call: str
    output: str
    prefix: str
    member: str
    description: str
    parameters: dict[str, Any]
    read: Callable[[Arguments, str], Any]
    write: Callable[[Any], Any]


def _schema(required: tuple[str, ...], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


def _given(arguments: Arguments, *names: str) -> dict[str, Any]:
    return {name: arguments[name] for name in names if arguments.get(name) is not None}


def _list_of_texts(value: Any, spare: str) -> list[str]:
    if isinstance(value, list):
        return [str(item) for item in value]
    return [value] if isinstance(value, str) else [spare]


def _shell_action(arguments: Arguments, told: str) -> dict[str, Any]:
    limits = {"timeout_ms": None, "max_output_length": None}
    commands = _list_of_texts(arguments.get("commands"), told)
    return {"commands": commands, **limits, **_given(arguments, *limits)}


def _local_shell_action(arguments: Arguments, told: str) -> dict[str, Any]:
    optional = _given(arguments, "timeout_ms", "user", "working_directory")
    command = _list_of_texts(arguments.get("command"), told)
    return {"type": "exec", "command": command, "env": arguments.get("env") or {}, **optional}


def _operation(arguments: Arguments, told: str) -> dict[str, Any]:
    kind = arguments.get("type")
    operation = {"type": kind if isinstance(kind, str) else "update_file"}
    operation["path"] = str(arguments.get("path") or "")
    if operation["type"] != "delete_file":
        operation["diff"] = str(arguments.get("diff") if arguments else told)
    return operation


def _arguments(arguments: Arguments, told: str) -> Any:
    del told
    return dict(arguments)


def _action(arguments: Arguments, told: str) -> dict[str, Any]:
    del told
    return dict(arguments) or {"type": "screenshot"}


def _actions(arguments: Arguments, told: str) -> list[Any]:
    actions = arguments.get("actions")
    return actions if isinstance(actions, list) and actions else [_action(arguments, told)]


def _same(value: Any) -> Any:
    return value


_COMPUTER: Final = _schema(
    ("type",),
    type={
        "enum": [
            "click", "double_click", "drag", "keypress", "move", "screenshot", "scroll", "type",
            "wait",
        ]
    },
    button={"enum": ["left", "right", "wheel", "back", "forward"]},
    x=_NUMBER, y=_NUMBER, scroll_x=_NUMBER, scroll_y=_NUMBER, keys=_TEXTS, text=_TEXT,
    path={"type": "array", "items": _schema(("x", "y"), x=_NUMBER, y=_NUMBER)},
)  # fmt: skip
_SCREEN: Final = "Act on the screen of a computer and get a screenshot of what it shows then."

CLIENT_TOOLS: Final[Mapping[str, ClientTool]] = {
    tool.type: tool
    for tool in (
        ClientTool(
            "shell", "shell_call", "shell_call_output", "sh", "action",
            "Run commands in the user's shell, each on its own, and get their output.",
            _schema(
                ("commands",), commands=_TEXTS, timeout_ms=_NUMBER, max_output_length=_NUMBER
            ),
            _shell_action, _same,
        ),
        ClientTool(
            "local_shell", "local_shell_call", "local_shell_call_output", "lsh", "action",
            "Run one command, a list of its words, on the user's machine and get its output.",
            _schema(
                ("command",), command=_TEXTS, env={"type": "object"}, timeout_ms=_NUMBER,
                working_directory=_TEXT,
            ),
            _local_shell_action, _same,
        ),
        ClientTool(
            "apply_patch", "apply_patch_call", "apply_patch_call_output", "apc", "operation",
            "Create, change or delete one file of the user. `diff` is in V4A form: for a new file "
            "each line with a `+` before it; for a change hunks that begin with `@@`, whose lines "
            "begin with a space, `+` or `-`.",
            _schema(
                ("type", "path"), type={"enum": ["create_file", "update_file", "delete_file"]},
                path=_TEXT, diff=_TEXT,
            ),
            _operation, _same,
        ),
        ClientTool(
            "computer", "computer_call", "computer_call_output", "cu", "actions", _SCREEN,
            _schema(("actions",), actions={"type": "array", "items": _COMPUTER}), _actions,
            lambda actions: {"actions": actions},
        ),
        ClientTool(
            "computer_use_preview", "computer_call", "computer_call_output", "cu", "action",
            _SCREEN, _COMPUTER, _action, _same,
        ),
        ClientTool(
            "tool_search", "tool_search_call", "tool_search_output", "tsc", "arguments",
            "Search for further tools and load those that fit.",
            _schema(("query",), query=_TEXT), _arguments, _same,
        ),
    )
}  # fmt: skip
_BY_CALL: Final = {tool.call: tool for tool in CLIENT_TOOLS.values()}
_BY_OUTPUT: Final = {tool.output: tool for tool in CLIENT_TOOLS.values()}


def function_of(tool: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Return a client's tool as a function of chat."""
    kind = str(tool["type"])
    if kind == CUSTOM:
        return _custom_function(tool, place)
    known = CLIENT_TOOLS[kind]
    given = tool.get("parameters")
    told = optional_text(tool.get("description"), f"{place}.description")
    width, height = (tool.get(name) for name in SCREEN)
    size = f" The screen has {width} x {height} pixels." if width and height else ""
    return {
        "name": kind,
        "description": (told or known.description) + size,
        "parameters": dict(mapping(given, f"{place}.parameters")) if given else known.parameters,
    }


def _custom_function(tool: Mapping[str, Any], place: str) -> dict[str, Any]:
    told = optional_text(tool.get("description"), f"{place}.description") or ""
    form = tool.get("format")
    if form is not None and mapping(form, f"{place}.format").get("type") == "grammar":
        definition = text(form.get("definition"), f"{place}.format.definition")
        syntax = form.get("syntax") or "lark"
        told += f"\n\n`{INPUT}` must follow this grammar ({syntax}):\n{definition}"
    described = {"type": "string", "description": "The tool's input, as plain text."}
    return {
        "name": text(tool.get("name"), f"{place}.name"),
        "description": told.strip(),
        "parameters": _schema((INPUT,), **{INPUT: described}),
    }


def call_arguments(item: Mapping[str, Any], place: str) -> tuple[str, str] | None:
    """Return name and arguments of a call in the history; None for any other item."""
    kind = item.get("type")
    if kind == "custom_tool_call":
        told = text(item.get(INPUT), f"{place}.{INPUT}")
        return text(item.get("name"), f"{place}.name"), _encode({INPUT: told})
    tool = _BY_CALL.get(str(kind))
    if tool is None:
        return None
    if tool.call == "computer_call":
        tool = CLIENT_TOOLS["computer" if item.get("actions") else "computer_use_preview"]
    return tool.type, _encode(tool.write(item.get(tool.member) or {}))


def output_parts(item: Mapping[str, Any], place: str) -> list[Message] | None:
    """Return the output of a call as parts of chat; None for any other item."""
    tool = _BY_OUTPUT.get(str(item.get("type")))
    if tool is None:
        return None
    output = item.get("output")
    if tool.output == "computer_call_output":
        shown = mapping(output, f"{place}.output").get("image_url")
        if not isinstance(shown, str):
            raise unsupported(
                f"{place}.output", "this gateway does not store images. Send its `image_url`."
            )
        return [text_part("A screenshot follows."), image_part(shown)]
    if tool.output == "tool_search_output":
        return [text_part(_encode([_name_of(tool) for tool in item.get("tools") or ()]))]
    if tool.output == "apply_patch_call_output":
        told = optional_text(output, f"{place}.output") or ""
        return [text_part(f"{item.get('status', 'completed')}\n{told}".strip())]
    return [text_part(output if isinstance(output, str) else _encode(output))]


def call_members(kind: str, told: str) -> dict[str, Any]:
    """Return the members of a call's item with the model's arguments; `kind` is the tool's."""
    tool = CLIENT_TOOLS[kind]
    members: dict[str, Any] = {"type": tool.call, tool.member: tool.read(_decoded(told), told)}
    if tool.call == "computer_call":
        members["pending_safety_checks"] = []
    elif tool.call == "tool_search_call":
        members["execution"] = "client"
    return members


def custom_input(told: str) -> str:
    """Return the text of a custom tool's call; a model may write it without its object."""
    given = _decoded(told).get(INPUT)
    return given if isinstance(given, str) else told


def _decoded(told: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(told, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError):
        return {}


def _encode(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _name_of(tool: Any) -> Any:
    return tool.get("name", tool.get("type")) if isinstance(tool, dict) else tool

"""The page `reference/cli.md`: every command, its arguments and its options."""

from collections.abc import Iterator
from enum import Enum
from inspect import cleandoc
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from deploy.docsite.command_tree import PROGRAM, CommandEntry, commands, root_options
from deploy.docsite.markdown import code, head, table

_COLUMNS = ("option", "value", "default", "meaning")


def text() -> str:
    """Return the text of the page."""
    found = list(commands())
    groups: dict[str, list[CommandEntry]] = {}
    for entry in found:
        groups.setdefault(entry.words[0], []).append(entry)
    parts = [
        head(
            "Command line",
            f"`{PROGRAM}` has {len(found)} commands. Each has `--help`. A command that prints "
            "results has `--json`; one that changes what others see has `--yes`.",
            "These options stand before the command's name:",
            _options(root_options()),
        ),
    ]
    for name, entries in groups.items():
        parts.append(f"## {PROGRAM} {name}")
        for entry in entries:
            if len(entry.words) > 1:
                parts.append(f"### {entry.name}")
            parts += _described(entry)
    return "\n\n".join(parts) + "\n"


def _described(entry: CommandEntry) -> Iterator[str]:
    yield cleandoc(entry.command.help or "").replace("\f", "")
    arguments = [item for item in entry.command.params if item.param_type_name == "argument"]
    words = [entry.name, *(_argument(item) for item in arguments), "[OPTIONS]"]
    yield f"Usage: `{' '.join(words)}`"
    if entry.command.params:
        yield _options(entry.command.params)


def _argument(item: Any) -> str:
    name = str(item.metavar or item.name.upper())
    name = f"{name}..." if item.nargs == -1 else name
    return name if item.required else f"[{name}]"


def _options(params: list[Any]) -> str:
    return table(_COLUMNS, (_row(item) for item in params if item.name != "help"))


def _row(item: Any) -> tuple[str, str, str, str]:
    is_argument = item.param_type_name == "argument"
    names = [item.name.upper()] if is_argument else [*item.opts, *item.secondary_opts]
    help_text = getattr(item, "help", None) or ""
    variable = f" Environment: `{item.envvar}`." if item.envvar else ""
    return (
        ", ".join(code(name) for name in names),
        _value(item),
        _default(item),
        help_text + variable,
    )


def _value(item: Any) -> str:
    if getattr(item, "is_flag", False):
        return ""
    words = _type_words(item.type_descriptor.annotation)
    bounds = (("at least", item.min), ("at most", item.max))
    words = ", ".join([words, *(f"{name} {limit}" for name, limit in bounds if limit is not None)])
    return f"{words}, repeatable" if item.multiple or item.nargs == -1 else words


def _type_words(annotation: Any) -> str:
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return " or ".join(f"`{member.value}`" for member in annotation)
    if get_origin(annotation) is Literal:
        return " or ".join(f"`{value}`" for value in get_args(annotation))
    names = {int: "whole number", float: "number", str: "text", Path: "path"}
    return names.get(annotation, str(getattr(annotation, "__name__", annotation)))


def _default(item: Any) -> str:
    if isinstance(getattr(item, "show_default", None), str):
        return str(item.show_default)
    if item.required:
        return "required"
    value = item.default
    if value is None or callable(value) or value in ((), [], False) or not str(value):
        return ""
    return code(str(getattr(value, "value", value)))

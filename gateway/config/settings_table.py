"""Table in docs/reference/settings.md, generated from the settings models.

`python -m gateway.config.settings_table` prints it. With a file name, it replaces the text between
the two marks of that file, with examples from the configurations given after it. A setting is a
path in the YAML document: `pools.NAME.engine.replicas`.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from gateway.config.schema import Settings
from gateway.config.sections import section_of
from gateway.config.setting_types import describe_type

BEGIN = "<!-- settings: begin, written by `make settings` -->"
END = "<!-- settings: end -->"

_HEAD = "| setting | meaning | type and allowed values | default | example |\n|---|---|---|---|---|"
_PLAIN = "top level"  # for settings outside of sections


class SettingEntry(NamedTuple):
    """Line of the table; `type` contains allowed values and bounds in words."""

    path: str
    default: str
    description: str
    type: str = ""


def rows(model: type[BaseModel] = Settings, prefix: str = "") -> Iterator[SettingEntry]:
    """Yield all settings in the file's order, including those of nested sections."""
    described = model.model_json_schema()
    for name, field in model.model_fields.items():
        path = f"{prefix}{name}"
        section, suffix = section_of(field.annotation)
        if section is not None:
            if field.description:
                yield SettingEntry(path + suffix, "", field.description)
            yield from rows(section, f"{path}{suffix}.")
        else:
            words = describe_type(described["properties"][name], described.get("$defs", {}))
            yield SettingEntry(path, _default(field), field.description or "", words)


def table(examples: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return a table for each section; `examples` by path are from `examples_of`."""
    parts: dict[str, list[str]] = {}
    for path, default, description, type_ in rows():
        example = examples.get(path, "") if type_ else ""
        cells = (f"`{path}`", description, type_, _code(default), _code(example))
        section = path.partition(".")[0].removesuffix("[]")
        parts.setdefault(section if f"{section}." in path or "[]" in path else _PLAIN, []).append(
            "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
        )
    tables = (f"## {name}\n\n{_HEAD}\n" + "\n".join(lines) for name, lines in parts.items())
    return "\n" + "\n\n".join(tables) + "\n"


def examples_of(documents: Iterable[Any]) -> dict[str, str]:
    """Return, for each setting, the first value in one of the configurations, as YAML."""
    found: dict[str, str] = {}
    for document in documents:
        for row in rows():
            values = list(_values(document, row.path.split(".")))
            if values and row.type and row.path not in found:
                found[row.path] = _as_yaml(values[0])
    return found


def _values(node: Any, steps: list[str]) -> Iterator[Any]:
    if not steps:
        if node is not None:
            yield node
        return
    name, rest = steps[0], steps[1:]
    if name == "NAME":
        for child in node.values() if isinstance(node, dict) else ():
            yield from _values(child, rest)
        return
    child = node.get(name.removesuffix("[]")) if isinstance(node, dict) else None
    for item in child if name.endswith("[]") and isinstance(child, list) else (child,):
        yield from _values(item, rest)


def _as_yaml(value: Any) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, width=10_000, sort_keys=False)
    return text.removesuffix("\n...\n").strip()


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def replace(text: str, examples: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the document with a new table between its marks."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the file lacks the marks {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{table(examples)}\n{END}{after}"


def main(arguments: list[str]) -> None:
    if not arguments:
        sys.stdout.write(table() + "\n")
        return
    path = Path(arguments[0])
    given = [yaml.safe_load(Path(name).read_text(encoding="utf-8")) for name in arguments[1:]]
    text = replace(path.read_text(encoding="utf-8"), examples_of(given))
    path.write_text(text, encoding="utf-8")


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is None:
        return ""
    if isinstance(value, Decimal | date):
        return str(value)
    return json.dumps(value.value if isinstance(value, Enum) else value)


if __name__ == "__main__":
    main(sys.argv[1:])

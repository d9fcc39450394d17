"""The table in deploy/SETTINGS.md, generated from the settings themselves, so that it cannot lie.

`python -m gateway.config.settings_table` prints it; with a file name it is written between the
two marks in that file. A setting is a path in the YAML document: `pools.NAME.engine.replicas`.
"""

import json
import sys
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from gateway.config.schema import Settings
from gateway.config.sections import section_of

BEGIN = "<!-- settings: begin, written by `make settings` -->"
END = "<!-- settings: end -->"


class SettingEntry(NamedTuple):
    path: str
    default: str
    description: str


def rows(model: type[BaseModel] = Settings, prefix: str = "") -> Iterator[SettingEntry]:
    """Every setting, in the file's order, nested sections in place."""
    for name, field in model.model_fields.items():
        path = f"{prefix}{name}"
        section, suffix = section_of(field.annotation)
        if section is not None:
            if field.description:
                yield SettingEntry(path + suffix, "", field.description)
            yield from rows(section, f"{path}{suffix}.")
        else:
            yield SettingEntry(path, _default(field), field.description or "")


def table() -> str:
    lines = ["| setting | default | meaning |", "|---|---|---|"]
    for path, default, description in rows():
        cells = (f"`{path}`", f"`{default}`" if default else "", description)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def replace(text: str) -> str:
    """The document with the table between the marks renewed."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the file lacks the marks {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def main(arguments: list[str]) -> None:
    if not arguments:
        sys.stdout.write(table() + "\n")
        return
    path = Path(arguments[0])
    path.write_text(replace(path.read_text(encoding="utf-8")), encoding="utf-8")


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

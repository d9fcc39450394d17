"""The generated settings table: complete, in order, and safe to write into a document."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from gateway.config.settings import Settings
from gateway.config.settings_table import BEGIN, END, replace, rows, table


def sections(annotation: object) -> Iterator[type[BaseModel]]:
    """An oracle of its own: every settings class that can be reached."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
        for field in annotation.model_fields.values():
            yield from sections(field.annotation)
    for part in get_args(annotation):
        yield from sections(part)


def test_every_field_of_every_section_has_a_row() -> None:
    paths = [row.path for row in rows()]
    assert len(paths) == len(set(paths))
    for section in sections(Settings):
        for name, field in section.model_fields.items():
            if not any(True for _ in sections(field.annotation)):
                assert any(path.split(".")[-1] == name for path in paths), (section, name)


@pytest.mark.parametrize(
    ("path", "default"),
    [
        ("state_dir", '".breakeven"'),
        ("server.port", "8080"),
        ("server.timeouts.connect_s", "5.0"),
        ("pools.NAME.engine.replicas", "0"),
        ("pools.NAME.gpu.type", "required"),
        ("pools.NAME.gpu.since", ""),
        ("policies[].slo.ttft_ms", ""),
        ("budgets[].hard", "true"),
        ("models.NAME.targets", "[]"),
    ],
)
def test_paths_and_defaults(path: str, default: str) -> None:
    found = {row.path: row for row in rows()}
    assert found[path].default == default
    assert found[path].description


def test_every_setting_says_what_it_means() -> None:
    assert [row.path for row in rows() if not row.description] == []


def test_the_document_around_the_table_stays() -> None:
    text = f"# Title\n{BEGIN}\nold\n{END}\nafter\n"
    renewed = replace(text)
    assert renewed == f"# Title\n{BEGIN}\n{table()}\n{END}\nafter\n"
    assert replace(renewed) == renewed


@pytest.mark.parametrize("text", ["", f"{BEGIN} only", f"{END} only"])
def test_a_document_without_marks_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="marks"):
        replace(text)


def test_command_writes_the_file(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text(f"{BEGIN}{END}", encoding="utf-8")
    command = [sys.executable, "-m", "gateway.config.settings_table", str(path)]
    subprocess.run(command, check=True)
    assert path.read_text(encoding="utf-8") == f"{BEGIN}\n{table()}\n{END}"

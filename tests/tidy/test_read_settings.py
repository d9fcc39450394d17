"""Every setting is read by the product: one that nothing reads promises what nobody does."""

import re
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from gateway.config.schema import Settings

PACKAGES = ("gateway", "backends", "router", "ledger", "dashboard", "deploy")


def sections(model: type[BaseModel], seen: set[type[BaseModel]]) -> set[type[BaseModel]]:
    if model not in seen:
        seen.add(model)
        for field in model.model_fields.values():
            for part in models_in(field.annotation):
                sections(part, seen)
    return seen


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in typing.get_args(annotation):
        yield from models_in(part)


def unread(model: type[BaseModel], read: set[str]) -> list[str]:
    return sorted(
        f"{section.__name__}.{name}"
        for section in sections(model, set())
        for name in section.model_fields
        if name not in read
    )


def read_names(root: Path) -> set[str]:
    return {
        name
        for package in PACKAGES
        for source in (root / package).rglob("*.py")
        for name in re.findall(r"\.(\w+)", source.read_text(encoding="utf-8"))
    }


def test_every_setting_is_read(root: Path) -> None:
    names = read_names(root)
    assert unread(Settings, names) == [], "read it, or take it out"
    # The control: a setting whose name stands nowhere.
    assert unread(Unread, names) == ["Unread.patience_of_nobody_s"]


class Unread(BaseModel):
    patience_of_nobody_s: float = 1.0

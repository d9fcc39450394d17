"""The type of a setting is said in words, with what it may be."""

from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

from gateway.config.setting_types import describe_type


class Inner(BaseModel):
    a: int = 0


class Sample(BaseModel):
    number: Annotated[int, Field(ge=1, le=64)] = 1
    ratio: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.5
    choice: Literal["stops", "continues"] | None = None
    flag: bool = False
    words: tuple[str, ...] = ()
    weights: dict[str, Annotated[float, Field(gt=0.0)]] = {}
    either: Annotated[float, Field(ge=0)] | Literal["off"] = 0.1
    variable: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] = "A"
    other: Annotated[str, Field(pattern="^x$")] = "x"
    inner: Inner = Inner()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("number", "whole number, at least 1, at most 64"),
        ("ratio", "number, above 0.0, below 1.0"),
        ("choice", "`stops` or `continues`"),
        ("flag", "`true` or `false`"),
        ("words", "list of: text"),
        ("weights", "mapping of names to: number, above 0.0"),
        ("either", "number, at least 0 or `off`"),
        ("variable", "name of an environment variable"),
        ("other", "text that matches `^x$`"),
        ("inner", "mapping with `a`"),
    ],
)
def test_types(name: str, words: str) -> None:
    schema = Sample.model_json_schema()
    assert describe_type(schema["properties"][name], schema["$defs"]) == words

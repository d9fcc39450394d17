"""Sections are strict and frozen, and a switch is no number."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Annotated, Any, Literal, get_args, get_origin

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from gateway.config.schema import Settings
from gateway.config.sections import ConfigSection, Positive, Zone, normalize_spelling, section_of


class Lamp(ConfigSection):
    watts: Positive = 5.0
    lit: bool = False


def test_a_section_takes_what_it_knows_and_keeps_it():
    lamp = Lamp.model_validate({"watts": 3, "lit": True})
    with pytest.raises(ValidationError):
        lamp.watts = 4.0
    for given in ({"color": "red"}, {"watts": True}, {"watts": 0}, {"watts": float("nan")}):
        with pytest.raises(ValidationError):
            Lamp.model_validate(given)


@pytest.mark.parametrize(
    ("field", "suffix"),
    [("models", ".NAME"), ("pools", ".NAME"), ("policies", "[]"), ("server", "")],
)
def test_a_section_is_found_in_the_map_or_list_that_holds_it(field, suffix):
    section, found = section_of(Settings.model_fields[field].annotation)
    assert section is not None
    assert found == suffix


def test_a_plain_field_holds_no_section():
    assert section_of(Settings.model_fields["prices"].annotation) == (None, "")


def _choices(annotation: Any) -> Iterator[str]:
    if get_origin(annotation) is Literal:
        yield from (word for word in get_args(annotation) if isinstance(word, str))
    elif not isinstance(annotation, str):
        for part in get_args(annotation):
            yield from _choices(part)


def _fields(model: type[BaseModel]) -> Iterator[tuple[str, Any]]:
    """Every field of the schema that holds words of a choice."""
    for name, field in model.model_fields.items():
        section, _ = section_of(field.annotation)
        if section is not None:
            yield from _fields(section)
        if list(_choices(field.annotation)):
            yield f"{model.__name__}.{name}", field.annotation


FIELDS = dict(_fields(Settings))


@pytest.mark.parametrize("field", FIELDS)
def test_every_word_of_every_choice_is_read_in_either_case(field) -> None:
    annotation = FIELDS[field]
    for word in _choices(annotation):
        for written in (word.upper(), word.lower(), word.capitalize(), f" {word} "):
            holder = get_origin(annotation)
            given: Any = {"a": written} if holder is dict else written
            given = [written] if holder is tuple else given
            read = normalize_spelling(given, annotation)
            assert (list(read.values()) if holder is dict else read) in (word, [word], (word,))


def test_the_schema_has_choices_of_every_form() -> None:
    assert {
        "TimesSection.days",
        "Settings.models",
        "PolicyRuleSection.kv_headroom_floor",
        "LogsSection.level",
    } <= set(FIELDS)


@pytest.mark.parametrize(
    "document",
    [
        {"policies": [{"name": "a", "match": {"times": [{"days": ["MON", "Tue", "sUn"]}]}}]},
        {"policies": [{"name": "a", "residency": "INTERNAL_ONLY", "otherwise": "Queue"}]},
        {"policies": [{"name": "a", "kv_headroom_floor": "OFF", "priority": "High"}]},
        {"models": {"openai/*": "PassThrough", "a": {"sticky": "Session", "residency": "ANY"}}},
        {"logs": {"level": "WARNING", "format": "JSON"}},
        {"providers": {"a": {"kind": "OpenAI", "features": ["Tools"], "kinds": ["Chat"]}}},
        {"pools": {"a": {"engine": {"kind": "vLLM", "metrics": "SGLang", "features": ["N"]},
                         "gpu": {"type": "h200", "billing": "Owned"}}}},
        {"budgets": [{"scope": "global", "usd": 1, "period": "Month", "timezone": "utc"}]},
        {"oidc": {"algorithms": ["rs256", "ed25519"]}},
        {"dashboard": {"enabled": "TRUE"}, "opentelemetry": {"traces": "No"}},
    ],
)  # fmt: skip
def test_settings_are_read_in_either_case(document) -> None:
    assert Settings.model_validate(document)


@pytest.mark.parametrize(
    ("written", "meant"),
    [("utc", "UTC"), ("europe/berlin", "Europe/Berlin"), ("AMERICA/NEW_YORK", "America/New_York"),
     ("Europe/Berlim", "Europe/Berlim"), ("UTC", "UTC")],
)  # fmt: skip
def test_a_zone_is_read_in_either_case(written, meant) -> None:
    assert TypeAdapter(Zone).validate_python(written) == meant


@pytest.mark.parametrize("given", ["mond", "", 1, None, True, ["mon"], {"mon": 1}])
def test_what_is_no_word_of_a_choice_stays_as_it_is(given) -> None:
    assert normalize_spelling(given, Literal["mon", "tue"]) == given


def test_a_bare_off_is_the_word_where_it_is_one_of_them() -> None:
    """YAML reads it as false."""
    assert normalize_spelling(False, Literal["off", "idle"]) == "off"
    assert normalize_spelling(False, Literal["on", "idle"]) is False
    assert normalize_spelling(False, Annotated[float, "off"] | Literal["off"]) is False


def test_a_sections_validator_is_built_with_the_whole_and_not_with_its_module() -> None:
    """Red before: each of forty was built by itself, and again inside of those around it."""
    program = (
        "from gateway.config.schema import Settings\n"
        "from gateway.config.schema_limits import BudgetSection\n"
        "print(BudgetSection.__pydantic_complete__, Settings.__pydantic_complete__)\n"
        "Settings()\n"
        "print(BudgetSection.__pydantic_complete__, Settings.__pydantic_complete__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert done.stdout.splitlines() == ["False False", "False True"]

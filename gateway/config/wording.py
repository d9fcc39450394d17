"""Messages for pydantic's findings in the terms of the configuration file.

They show the path as in the file, without class names or union members, and no value of a field
that may hold a secret. Each type of finding has one sentence that says what is expected. An unknown
key is answered with the nearest known key or its right place.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from gateway.config.faults import ConfigFault, Place, suggest
from gateway.config.schema import NAME, Settings
from gateway.config.sections import CLOCK, HOST, ORIGIN, URL, VARIABLE, section_of

SHOWN_CHARACTERS = 60
NAME_WORDS = "printable ASCII characters, without a space at either end"
_FORMS = {
    NAME: NAME_WORDS,
    CLOCK: "a time of the day, two digits each: `09:00`, or `24:00` at its end",
    HOST: "a host with its port: `10.0.0.7:9444`",
    ORIGIN: "where pages come from, without a path: `https://app.example.com`",
    URL: "an address: `https://id.example.com`",
    VARIABLE: "the name of an environment variable like OPENAI_API_KEY, never the secret itself",
}


def fault_of(finding: Mapping[str, Any], document: Any) -> ConfigFault:
    """Return the fault of one entry of `ValidationError.errors()`."""
    place = location_of(finding, document)
    return ConfigFault(place, _sentence(finding, place))


def _sentence(finding: Mapping[str, Any], place: Place) -> str:
    value, kind = finding["input"], finding["type"]
    by_place = _BY_PLACE.get(kind)
    if by_place is not None:
        return by_place(place)
    if finding["loc"][-1] == "[key]":
        if isinstance(value, str):
            return f"a name is {NAME_WORDS}"
        return f"a name must be text: put `{_shown(value)}` into quotes"
    if value is None:
        return "is empty: give it a value or leave the key out"
    if isinstance(value, bool):
        return (
            f"`{str(value).lower()}` does not belong here (YAML reads a bare yes, no, on and off as"
            " true and false: put the word into quotes)"
        )
    say = _SENTENCES.get(kind)
    return str(finding["msg"]) if say is None else say(value, finding.get("ctx", {}))


def location_of(finding: Mapping[str, Any], document: Any) -> Place:
    """Return the location in the document, without members of unions."""
    place: list[str | int] = []
    here = document
    for part in finding["loc"]:
        if isinstance(here, Mapping) and part in here:
            here = here[part]
            place.append(str(part))
        elif isinstance(here, Sequence) and isinstance(part, int) and part < len(here):
            here = here[part]
            place.append(part)
    if finding["type"] == "missing":
        place.append(finding["loc"][-1])
    return tuple(place)


def section_at(place: Place) -> type[BaseModel] | None:
    """Return the schema's section at a place."""
    section: type[BaseModel] = Settings
    is_name = False
    for part in place:
        if is_name:
            is_name = False
            continue
        field = section.model_fields.get(str(part))
        inner, suffix = (None, "") if field is None else section_of(field.annotation)
        if inner is None:
            return None
        section, is_name = inner, bool(suffix)
    return section


def suggested_key(place: Place) -> Place | None:
    """Return the known key nearest to an unknown one, or `None`."""
    section = section_at(place[:-1])
    hint = suggest(str(place[-1]), section.model_fields) if section else ""
    if "did you mean" not in hint:
        return None
    return (*place[:-1], hint.split("`")[1])


def _unknown_key(place: Place) -> str:
    key = str(place[-1])
    section = section_at(place[:-1])
    hint = suggest(key, section.model_fields) if section else ""
    if "did you mean" not in hint:
        homes = [path for path in _paths(Settings) if path.rpartition(".")[2] == key]
        hint = f"; it belongs to `{homes[0]}`" if len(homes) == 1 else hint
        hint = f"; `{key}` is a key of {_some(homes)}" if len(homes) > 1 else hint
    return f"unknown key{hint}"


def _some(paths: list[str]) -> str:
    shown = [f"`{path.rpartition('.')[0]}`" for path in paths]
    return " and ".join(shown[:2]) if len(shown) <= 2 else ", ".join(shown[:3])


def _paths(section: type[BaseModel], prefix: str = "") -> list[str]:
    found: list[str] = []
    for name, field in section.model_fields.items():
        inner, suffix = section_of(field.annotation)
        found.append(f"{prefix}{name}")
        if inner is not None:
            found += _paths(inner, f"{prefix}{name}{suffix}.")
    return found


def _meaning(place: Place) -> str:
    section = section_at(place[:-1])
    field = section.model_fields.get(str(place[-1])) if section else None
    if field is None:
        return "this key is required"
    if field.description:
        return field.description
    inner, _ = section_of(field.annotation)
    required = (
        [name for name, model_field in inner.model_fields.items() if model_field.is_required()]
        if inner
        else []
    )
    return "a section" + (
        f" with {', '.join(f'`{name}`' for name in required)}" if required else ""
    )


def _shown(value: object) -> str:
    text = str(value)
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "..."


def _not(what: str) -> Callable[[Any, Mapping[str, Any]], str]:
    return lambda value, _: f"`{_shown(value)}` is not {what}"


def _bound(words: str, member: str) -> Callable[[Any, Mapping[str, Any]], str]:
    return lambda value, ctx: f"`{_shown(value)}` must be {words} {ctx[member]}"


def _must(words: str) -> Callable[[Any, Mapping[str, Any]], str]:
    return lambda value, _: f"must be {words}, not {_form(value)}"


def _form(value: object) -> str:
    if isinstance(value, Mapping):
        return "`key: value` lines"
    if isinstance(value, list):
        return "a list"
    return f"`{_shown(value)}`"


def _choice(value: Any, ctx: Mapping[str, Any]) -> str:
    words = ctx["expected"].replace("'", "`").replace(" or ", ", ")
    return (
        f"`{_shown(value)}` is not one of {words}"
        if "," in words
        else f"must be {words}, not `{_shown(value)}`"
    )


_NUMBER = _not("a number")
_WHOLE = _not("a whole number")
_SECTION = _must("`key: value` lines")
_LIST = _must("a list like [x, y]")

_SENTENCES: dict[str, Callable[[Any, Mapping[str, Any]], str]] = {
    "literal_error": _choice,
    "int_parsing": _WHOLE,
    "int_type": _WHOLE,
    "int_from_float": _WHOLE,
    "int_parsing_size": _WHOLE,
    "float_parsing": _NUMBER,
    "float_type": _NUMBER,
    "decimal_parsing": _NUMBER,
    "decimal_type": _NUMBER,
    "finite_number": _not("a finite number"),
    "decimal_max_places": _not("an amount: the smallest unit is 0.000000000001 USD"),
    "bool_parsing": _not("true or false"),
    "bool_type": _not("true or false"),
    "string_type": lambda value, _: (
        f"must be text: put `{_shown(value)}` into quotes"
        if not isinstance(value, (Mapping, list))
        else f"must be text, not {_form(value)}"
    ),
    "string_too_short": lambda _, __: "must not be empty",
    "string_pattern_mismatch": lambda value, ctx: (
        "must not be empty" if value == "" else f"must be {_FORMS[ctx['pattern']]}"
    ),
    "string_too_long": lambda _, ctx: f"must have at most {ctx['max_length']} characters",
    "too_long": lambda _, ctx: f"must have at most {ctx['max_length']:,} entries",
    "greater_than": _bound("more than", "gt"),
    "greater_than_equal": _bound("at least", "ge"),
    "less_than_equal": _bound("at most", "le"),
    "model_type": _SECTION,
    "dict_type": _SECTION,
    "tuple_type": _LIST,
    "date_type": _not("a date like 2026-11-01"),
    "date_parsing": _not("a date like 2026-11-01"),
    "date_from_datetime_parsing": _not("a date like 2026-11-01"),
    "date_from_datetime_inexact": _not("a date like 2026-11-01, without a time"),
}

_BY_PLACE: dict[str, Callable[[Place], str]] = {
    "extra_forbidden": _unknown_key,
    "missing": lambda place: f"is missing: {_meaning(place)}",
    "invalid_key": lambda _: "unknown key: is a comma or a quote misplaced?",
}

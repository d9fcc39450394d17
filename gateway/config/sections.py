"""Base of configuration sections: strict, frozen, without inline secrets."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator
from pydantic_core import PydanticCustomError
from pydantic_core.core_schema import ValidationInfo

from ledger.budgets.windows import zone_spelled

Ratio = Annotated[float, Field(ge=0.0, le=1.0)]
Positive = Annotated[float, Field(gt=0.0)]
# Precise to one pico-USD; a ledger row holds up to 9 million dollars, a total more.
Usd = Annotated[Decimal, Field(ge=0, le=1_000_000, decimal_places=12)]
TotalUsd = Annotated[Decimal, Field(ge=0, le=1_000_000_000_000, decimal_places=12)]
NAME = r"^[!-~]([ -~]*[!-~])?$"  # used in headers, metrics and URLs
Named = Annotated[str, Field(pattern=NAME, max_length=200)]
# As browsers send it, without a path or final slash. `null` identifies no single page.
ORIGIN = r"^(\*|[a-z][a-z0-9+.-]*://[!-.0-;=?-~]+)$"
Origin = Annotated[str, Field(pattern=ORIGIN, max_length=300)]
VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"
Variable = Annotated[str, Field(pattern=VARIABLE)]
OFFSET = r"^([+-](0\d|1[01]):[0-5]\d|-12:00|\+1[23]:[0-5]\d|\+14:00)$"
UtcOffset = Annotated[str, Field(pattern=OFFSET)]
# Body members that the gateway sets itself, or that its cost bounds do not cover.
MANAGED_MEMBERS = frozenset((
    "audio", "best_of", "cache_salt", "functions", "input", "max_completion_tokens",
    "max_output_tokens", "max_tokens", "messages", "modalities", "model", "n", "priority", "prompt",
    "service_tier", "store", "stream", "stream_options", "tools", "web_search_options",
))  # fmt: skip
CLOCK = r"^(([01]\d|2[0-3]):[0-5]\d|24:00)$"
URL = r"^https?://[\w.:\[\]-]+(/[!-;=?-~]*)?$"
HOST = r"^([A-Za-z0-9]([\w.-]*\w)?|\[[0-9A-Fa-f:.]+\]):[1-9]\d{0,4}$"
Zone = Annotated[
    str, BeforeValidator(lambda value: zone_spelled(value) if isinstance(value, str) else value)
]
# A word of a known list, accepted in either case.
Lowered = Annotated[
    str, BeforeValidator(lambda value: value.lower() if isinstance(value, str) else value)
]
KvEvents = Annotated[
    bool | tuple[str, ...],
    Field(
        description="where vLLM tells what its prefix cache loses: `true` for `replicas`; for "
        "`endpoints` their addresses, in order: tcp://10.0.0.5:5557, tcp://*:5557 where they "
        "connect to us"
    ),
]


class ConfigSection(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, str_strip_whitespace=True, allow_inf_nan=False,
        # Otherwise each section's validator is built at import, and again in its parents.
        # All are built once, on first use.
        defer_build=True,
    )  # fmt: skip

    @field_validator("*", mode="before")
    @classmethod
    def _check_choice(cls, value: Any, info: ValidationInfo) -> Any:
        """Accept words of a choice in either case, and reject switches as numbers.

        YAML reads a bare `off` as false, and pydantic reads false as 0.
        """
        assert info.field_name is not None
        annotation = cls.model_fields[info.field_name].annotation
        value = normalize_spelling(value, annotation)
        if isinstance(value, bool) and bool not in (annotation, *get_args(annotation)):
            raise PydanticCustomError("switch", "switch")
        return value


class KeyCommandSection(ConfigSection):
    argv: Annotated[tuple[str, ...], Field(min_length=1)] = Field(
        description="program and its words, no shell; the program prints the secret and ends with 0"
    )
    env: tuple[Variable, ...] = Field(
        (),
        description="variables that the program may see beside PATH, HOME and the like: VAULT_ADDR",
    )
    timeout_s: Annotated[float, Field(gt=0.0, le=60.0)] = Field(
        10.0, description="time after which the program is ended, and the start fails"
    )


def normalize_spelling(value: Any, annotation: Any) -> Any:
    """Return the value with all words of choices in the schema's spelling: `MON` as `mon`.

    A bare `off` of a choice, which YAML reads as false, becomes that word.
    """
    kind, parts = get_origin(annotation), get_args(annotation)
    if kind is Literal:
        return normalize_choice(value, parts)
    if kind is Annotated:
        return normalize_spelling(value, parts[0])
    if kind in (tuple, list):
        is_list = isinstance(value, list | tuple)
        return [normalize_spelling(item, parts[0]) for item in value] if is_list else value
    if kind is dict:
        is_map = isinstance(value, Mapping)
        return (
            {key: normalize_spelling(item, parts[1]) for key, item in value.items()}
            if is_map
            else value
        )
    if isinstance(value, str):  # in a union
        return next(
            (word for part in parts if (word := normalize_spelling(value, part)) != value), value
        )
    return value


def normalize_choice(value: Any, words: Sequence[Any]) -> Any:
    """Return the word of the choice that equals the value in either case, else the value."""
    if value is False and "off" in words:
        return "off"
    if not isinstance(value, str):
        return value
    wanted = value.strip().lower()
    return next((word for word in words if str(word).lower() == wanted), value)


def section_of(annotation: Any) -> tuple[type[BaseModel] | None, str]:
    """Return a field's section and the rest of its path: `.NAME` for maps, `[]` for lists."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, ""
    for part in get_args(annotation):
        section, _ = section_of(part)
        if section is not None:
            origin = getattr(annotation, "__origin__", None)
            suffix = {dict: ".NAME", tuple: "[]", list: "[]"}.get(origin, "") if origin else ""
            return section, suffix
    return None, ""

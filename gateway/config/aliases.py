"""Resolution of the model name in a request to the logical model that serves it.

Names of passed-through models get the configuration's spelling where it names them. Some providers
and prices accept any spelling, but budgets, limits and policies need one name.
"""

import importlib
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.config.schema import ModelSection, Settings

_MODEL_SCOPE = "model:"


def resolve_model(settings: "Settings", name: str) -> tuple[str, "ModelSection"] | None:
    """Return the logical model that serves a name, with its definition; `None` if unknown.

    Aliases and pass-through patterns are followed.
    """
    name = configured_name(settings, name)
    seen: set[str] = set()
    while name not in seen:
        seen.add(name)
        model = settings.models.get(name)
        if model is not None and not isinstance(model, str):
            if model.same_as is None:
                return name, model
            name = model.same_as
            continue
        provider, slash, rest = name.partition("/")
        if (
            slash
            and rest not in ("", "*")
            and settings.models.get(f"{provider}/*") == "passthrough"
        ):
            return name, _section()(targets=(name,), compare_with=(name,))
        return None
    return None


def sections_behind(settings: "Settings", name: str) -> "Iterator[ModelSection]":
    """Yield the section of a name, and of each name that it is an alias of in turn."""
    at: str | None = configured_name(settings, name)
    seen: set[str] = set()
    while at is not None and at not in seen:
        seen.add(at)
        model = settings.models.get(at)
        if model is None or isinstance(model, str):
            return
        yield model
        at = model.same_as


def configured_name(settings: "Settings", name: str) -> str:
    """Return the name in the configuration's spelling, else the name without outer spaces."""
    name = name.strip()
    if name in settings.models or "/" not in name:
        return name
    plain = name.casefold()
    return next((known for known in _named(settings) if known.casefold() == plain), name)


def _named(settings: "Settings") -> Iterator[str]:
    """Yield all model names that the configuration mentions."""
    yield from settings.models
    scopes = [budget.scope for budget in settings.budgets]
    for scope in (*scopes, *(limit.scope for limit in settings.limits)):
        if scope.startswith(_MODEL_SCOPE):
            yield scope.removeprefix(_MODEL_SCOPE)
    for policy in settings.policies:
        yield from policy.match.models


def logical_models(settings: "Settings") -> Iterator[tuple[str, "ModelSection"]]:
    """Yield the models that are neither aliases nor pass-through."""
    for name, model in settings.models.items():
        if not isinstance(model, str) and model.same_as is None:
            yield name, model


@cache
def _section() -> "type[ModelSection]":
    """Return `ModelSection`, imported on first use because that takes a third of a second."""
    found: type[ModelSection] = importlib.import_module("gateway.config.schema").ModelSection
    return found

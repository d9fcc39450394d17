"""From a name that an app asks for to the logical model that serves it."""

import importlib
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gateway.config.schema import ModelSection, Settings


def resolve_model(settings: "Settings", name: str) -> tuple[str, "ModelSection"] | None:
    """Follow aliases and pass-through patterns; `None` when no model has that name.

    Returns the logical model that serves (the alias's target) and its definition.
    """
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


def logical_models(settings: "Settings") -> Iterator[tuple[str, "ModelSection"]]:
    """The models that are no aliases and no pass-through."""
    for name, model in settings.models.items():
        if not isinstance(model, str) and model.same_as is None:
            yield name, model


@cache
def _section() -> "type[ModelSection]":
    """Return the class, once a name is passed through: to import it takes a third of a second."""
    found: type[ModelSection] = importlib.import_module("gateway.config.schema").ModelSection
    return found

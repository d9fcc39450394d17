"""From a name that an app asks for to the logical model that serves it."""

from collections.abc import Iterator

from gateway.config.schema import ModelSection, Settings


def resolve_model(settings: Settings, name: str) -> tuple[str, ModelSection] | None:
    """Follow aliases and pass-through patterns; `None` when no model has that name.

    Returns the logical model that serves (the alias's target) and its definition.
    """
    seen: set[str] = set()
    while name not in seen:
        seen.add(name)
        model = settings.models.get(name)
        if isinstance(model, ModelSection):
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
            return name, ModelSection(targets=(name,), compare_with=(name,))
        return None
    return None


def logical_models(settings: Settings) -> Iterator[tuple[str, ModelSection]]:
    """The models that are no aliases and no pass-through."""
    for name, model in settings.models.items():
        if isinstance(model, ModelSection) and model.same_as is None:
            yield name, model

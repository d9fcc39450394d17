"""Models for the LoRA adapters that pools declare, unless the file defines them.

This works on the document before validation: generated parts are checked like written ones, and
parts of the wrong shape are left for the schema to report.
"""

from collections.abc import Iterator, Mapping
from typing import Any

INHERITED = ("compare_with", "residency", "sticky")


def with_adapters(document: Any) -> Any:
    """Return the document with a model for each adapter that no model names."""
    pools, models = _member(document, "pools"), _member(document, "models")
    if not isinstance(document, Mapping) or not isinstance(pools, Mapping):
        return document
    if models is not None and not isinstance(models, Mapping):
        return document
    known = dict(models or {})
    made: dict[str, dict[str, Any]] = {}
    for pool, name in _declared_adapters(pools):
        if name in known:
            continue
        target = f"pool:{pool}"
        if name in made:
            made[name]["targets"].append(target)
            continue
        base = next((model for model in known.values() if _serves(model, target)), None)
        inherited = {key: _member(base, key) for key in INHERITED}
        made[name] = {"targets": [target], "adapter": name} | {
            key: value for key, value in inherited.items() if value is not None
        }
    return document if not made else {**document, "models": known | made}


def _declared_adapters(pools: Mapping[Any, Any]) -> Iterator[tuple[str, str]]:
    for pool, section in pools.items():
        adapters = _member(_member(section, "engine"), "adapters")
        if isinstance(adapters, Mapping):
            for name in adapters:
                if isinstance(name, str) and isinstance(pool, str):
                    yield pool, name


def _serves(model: Any, target: str) -> bool:
    targets = _member(model, "targets")
    return (
        isinstance(targets, list | tuple)
        and target in targets
        and not _member(model, "same_as")
        and not _member(model, "adapter")
    )


def _member(section: Any, name: str) -> Any:
    if isinstance(section, Mapping):
        return section.get(name)
    return getattr(section, name, None)

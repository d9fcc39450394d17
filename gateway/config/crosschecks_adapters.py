"""Checks of LoRA adapters across models and pools."""

from collections.abc import Iterator

from gateway.config.faults import ConfigFault, suggest
from gateway.config.schema import ModelSection, Settings


def check_adapters(settings: Settings) -> Iterator[ConfigFault]:
    """Yield adapters that not all pools of their model have, and names with two meanings."""
    for name, model in settings.models.items():
        if isinstance(model, ModelSection):
            yield from _of_model(settings, name, model)
    for pool in settings.pools:
        yield from _of_pool(settings, pool)


def _of_model(settings: Settings, name: str, model: ModelSection) -> Iterator[ConfigFault]:
    here = ("models", name, "adapter")
    pools = [target[5:] for target in model.reachable if target[:5] == "pool:"]
    declared = [
        (pool, settings.pools[pool].engine.adapters) for pool in pools if pool in settings.pools
    ]
    if model.adapter is None:
        for pool, known in declared:
            if name in known:
                words = f"`{name}` is also an adapter of the pool `{pool}`: write `adapter: {name}`"
                yield ConfigFault(here, words)
        return
    if model.same_as is not None or not pools:
        yield ConfigFault(here, "an adapter is served by pools: name one in `targets`")
    for pool, known in declared:
        if model.adapter not in known:
            hint = suggest(model.adapter, known)
            words = f"the pool `{pool}` has no adapter `{model.adapter}`{hint}"
            yield ConfigFault(here, words, about=("pools", pool))


def _of_pool(settings: Settings, name: str) -> Iterator[ConfigFault]:
    engine = settings.pools[name].engine
    here = ("pools", name, "engine", "adapters")
    served = engine.served_name or name
    if served in engine.adapters:
        words = f"`{served}` is what the engine calls the model itself: name it differently"
        yield ConfigFault((*here, served), words)
    for adapter in engine.adapters:
        if "=" in adapter or "," in adapter:
            words = f"`{adapter}` cannot be an adapter's name: leave out `=` and `,`"
            yield ConfigFault((*here, adapter), words)

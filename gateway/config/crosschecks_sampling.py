"""Checks of sampling: baselines that would send prompts out, and models of other pools."""

from collections.abc import Iterator

from gateway.config.aliases import resolve_model
from gateway.config.faults import ConfigFault, suggest
from gateway.config.schema import Settings


def check_sampling(settings: Settings) -> Iterator[ConfigFault]:
    for name, pool in settings.pools.items():
        rule, here = pool.sampling, ("pools", name, "sampling")
        if rule is None:
            continue
        for field in ("model", "baseline"):
            asked = getattr(rule, field)
            found = resolve_model(settings, asked)
            if found is None:
                words = f"no model named `{asked}`{suggest(asked, settings.models)}"
                yield ConfigFault((*here, field), words)
            elif field == "model" and set(found[1].reachable) != {f"pool:{name}"}:
                words = f"`{asked}` is judged: it must have `pool:{name}` as its only target"
                yield ConfigFault((*here, field), words)
            elif any(not target.startswith("pool:") for target in found[1].reachable):
                words = f"`{asked}` has a target that is not a pool: sampled prompts stay here"
                yield ConfigFault((*here, field), words)
        if rule.model == rule.baseline:
            yield ConfigFault(
                (*here, "baseline"), "is the model itself, so no answer could differ: name another"
            )
        if not rule.teams:
            yield ConfigFault((*here, "teams"), "name the teams that agreed to it")

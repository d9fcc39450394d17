"""Checks of pools that size themselves: bounds, rent and actuator.

`check_act_scored` uses facts of the ledger: a pool may act only after its advice was scored.
"""

from collections.abc import Iterator
from typing import NamedTuple

from gateway.config.faults import ConfigFault, Place, warning
from gateway.config.schema import PoolSection, Settings
from gateway.config.schema_scale import ActuatorSection, ScaleSection

SCORED_H = 24.0  # hours of scored advice that a pool needs before it acts


class AdviceScore(NamedTuple):
    """Score of a pool's advice in the ledger: hours scored, and dollars it would have saved."""

    hours: float
    earned_usd: float


def check_scale(settings: Settings) -> Iterator[ConfigFault]:
    for name, pool in settings.pools.items():
        if pool.scale is None:
            continue
        here: Place = ("pools", name, "scale")
        yield from _check_numbers(pool, pool.scale, here)
        yield from _check_rent(pool, pool.scale, here)
        yield from _check_actuator(settings, name, pool.scale, here)
        if pool.roles is not None:
            words = (
                "a pool with `roles` has a fixed number of engines: leave out `roles` or `scale`"
            )
            yield ConfigFault(here, words)
        if pool.upkeep.stop is not None:
            words = "stops engines that `scale` starts: leave one of the two out"
            yield ConfigFault(("pools", name, "upkeep", "stop"), words)


def _check_numbers(pool: PoolSection, scale: ScaleSection, here: Place) -> Iterator[ConfigFault]:
    if scale.min > scale.max:
        yield ConfigFault((*here, "min"), f"{scale.min} is more than `max`, {scale.max}")
    if scale.reserved > scale.max:
        yield ConfigFault((*here, "reserved"), f"{scale.reserved} is more than `max`, {scale.max}")
    if scale.interruptions_per_day and scale.billing != "spot":
        words = f"is of `billing: spot`, and `billing` is `{scale.billing}`: leave it out"
        yield ConfigFault((*here, "interruptions_per_day"), words)
    if scale.max < 1:
        yield ConfigFault(
            (*here, "max"), "must be at least 1: a pool without engines serves nothing"
        )
    places = pool.engine.replicas + len(pool.engine.endpoints)
    one_address = scale.actuator.in_cluster and scale.actuator.workload == "Deployment"
    if places < scale.max and not one_address:
        words = f"{scale.max} is more than the pool's {places} engines; each needs its place: "
        yield ConfigFault((*here, "max"), words + "raise `engine.replicas`, or name `endpoints`")


def _check_rent(pool: PoolSection, scale: ScaleSection, here: Place) -> Iterator[ConfigFault]:
    if scale.rent(pool.gpu.count, pool.gpu.usd_per_hour) is None:
        words = "is required to compute what an engine earns; or set `gpu.usd_per_hour`"
        yield ConfigFault((*here, "rent_usd_per_hour"), words)
    paid_anyway = pool.gpu.billing != "on_demand"
    if paid_anyway and scale.mode == "act" and scale.reserved < scale.max:
        words = (
            f"`{pool.gpu.billing}` hours are paid whether engines run or not: to stop them earns "
            "nothing; set `on_demand`, or `scale.mode: advise`"
        )
        yield ConfigFault((*here[:2], "gpu", "billing"), words)
    elif paid_anyway:
        words = f"`{pool.gpu.billing}` hours are paid in any case: the advice is what `on_demand` "
        yield warning((*here, "mode"), words + "would earn")


def _check_actuator(
    settings: Settings, name: str, scale: ScaleSection, here: Place
) -> Iterator[ConfigFault]:
    actuator, place = scale.actuator, (*here, "actuator")
    engine = settings.pools[name].engine
    if actuator.kind == "supervisor":
        if engine.endpoints or not engine.replicas:
            words = "`supervisor` sizes `replicas` of this machine; for `endpoints` set "
            yield ConfigFault((*place, "kind"), words + "`kubernetes`, `keda` or `command`")
        if settings.peers.hosts:
            words = "`supervisor` knows one host's engines; with `peers` set `kubernetes`, `keda` "
            yield ConfigFault((*place, "kind"), words + "or `command`")
    elif engine.replicas:
        words = f"`{actuator.kind}` sizes engines of other machines (`endpoints`); for `replicas` "
        yield ConfigFault((*place, "kind"), words + "set `supervisor`")
    if actuator.kind == "keda" and settings.server.keda_port is None:
        words = "`keda` asks how many engines to run: set `server.keda_port`"
        yield ConfigFault((*place, "kind"), words)
    yield from _check_command(actuator, place)
    yield from _check_workload(actuator, place)


def _check_command(actuator: ActuatorSection, place: Place) -> Iterator[ConfigFault]:
    if actuator.kind != "command":
        for field in ("argv", "env"):
            if getattr(actuator, field):
                yield ConfigFault((*place, field), "is of `kind: command`: leave it out")
    elif not actuator.argv:
        yield ConfigFault(
            (*place, "argv"), "is required: name the program that starts and stops engines"
        )
    elif not actuator.argv[0].startswith("/"):
        words = f"`{actuator.argv[0]}` has no full path: name the program as /usr/local/bin/PROGRAM"
        yield ConfigFault((*place, "argv"), words)


def _check_workload(actuator: ActuatorSection, place: Place) -> Iterator[ConfigFault]:
    if actuator.in_cluster and not actuator.name:
        yield ConfigFault((*place, "name"), "is required: name the workload to scale")
    if actuator.name and not actuator.in_cluster:
        words = "is of `kind: kubernetes` and `kind: keda`: leave it out"
        yield ConfigFault((*place, "name"), words)


def score_fault(name: str, scale: ScaleSection, score: AdviceScore | None) -> ConfigFault | None:
    """Return why a pool may not act yet; `None` if it may. An unknown score counts as 0 hours."""
    if scale.mode != "act" or scale.act_unscored:
        return None
    hours = 0.0 if score is None else score.hours
    fix = "set `advise` until then, or `act_unscored: true` to act without"
    here: Place = ("pools", name, "scale", "mode")
    if hours < SCORED_H:
        words = f"`act` needs {SCORED_H:g} h of scored advice, and the ledger has {hours:.1f} h"
        return ConfigFault(here, f"{words}: {fix}")
    if score is not None and score.earned_usd < 0:
        words = (
            f"`act` needs advice that earned: over {hours:.0f} h it would have cost "
            f"${-score.earned_usd:.2f} more than the fleet as it was"
        )
        return ConfigFault(here, f"{words}: {fix}")
    return None

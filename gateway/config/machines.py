"""Hardware share of each pool: all of its machine, or a part of a shared one.

The rate of a shared machine is counted once. The parts follow the pools' `share` and add up to the
rate exactly, in pico-USD (largest remainder), so that the pools' bills equal the machine's.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gateway.config.faults import ConfigFault
from gateway.config.pool_seats import seat_count
from gateway.config.schema import PoolSection, Settings
from ledger.money import split_largest_remainder, usd_to_pusd

PPM = 1_000_000
# Settings of the machine, equal in all of its pools.
OF_THE_MACHINE = ("type", "count", "billing", "usd_per_hour", "source", "since", "until")


@dataclass(frozen=True, slots=True)
class MachineShare:
    """Share of a pool; `pusd_per_hour` is its rate for one GPU, `None` if unknown."""

    pusd_per_hour: int | None
    machine: str | None = None
    share_ppm: int = PPM


def machine_shares(settings: Settings) -> dict[str, MachineShare]:
    """Return each pool's share by pool name."""
    found = {}
    for machine, pools in _machines(settings).items():
        weights = [int(pool.gpu.share * PPM) for pool in pools.values()]
        rate = next(iter(pools.values())).gpu.usd_per_hour
        rates: list[int] | list[None] = [None] * len(pools)
        if rate is not None:
            rates = split_largest_remainder(usd_to_pusd(rate), weights)
        shares = split_largest_remainder(PPM, weights)
        for name, pusd, ppm in zip(pools, rates, shares, strict=True):
            found[name] = MachineShare(pusd, machine, ppm)
    for name, pool in settings.pools.items():
        rate = pool.gpu.usd_per_hour
        if name not in found:
            found[name] = MachineShare(None if rate is None else usd_to_pusd(rate))
    return found


def check_machines(settings: Settings) -> Iterator[ConfigFault]:
    """Yield pools that disagree about their shared machine, and shares without a machine."""
    for name, pool in settings.pools.items():
        if pool.gpu.machine is None and pool.gpu.share != 1:
            words = "is a part of a shared machine: name it in `machine`, here and in its pools"
            yield ConfigFault(("pools", name, "gpu", "share"), words)
    for machine, pools in _machines(settings).items():
        (first, stated), *others = pools.items()
        for name, pool in others:
            for field in OF_THE_MACHINE:
                if getattr(pool.gpu, field) != getattr(stated.gpu, field):
                    words = f"differs from pools.{first}.gpu.{field}, and both are on `{machine}`"
                    yield ConfigFault(("pools", name, "gpu", field), words)
        if len(pools) > 1:
            for name, pool in pools.items():
                yield from _check_shared(machine, name, pool)


def _check_shared(machine: str, name: str, pool: PoolSection) -> Iterator[ConfigFault]:
    here = ("pools", name, "gpu")
    if pool.gpu.billing == "on_demand":
        words = f"`{machine}` is shared, and when it runs is not seen: use `reserved` or `owned`"
        yield ConfigFault((*here, "billing"), words)
    if seat_count(pool) != 1:
        words = f"`{machine}` is shared: each of its pools runs one engine there"
        yield ConfigFault((*here, "machine"), words)


def _machines(settings: Settings) -> Mapping[str, dict[str, PoolSection]]:
    found: dict[str, dict[str, PoolSection]] = {}
    for name, pool in settings.pools.items():
        if pool.gpu.machine is not None:
            found.setdefault(pool.gpu.machine, {})[name] = pool
    return found

"""Which of the host's GPUs each engine gets that `serve` starts, and how much of their memory.

vLLM takes the first GPUs that it sees: replicas that are told nothing load into the same ones, and
the second finds no memory free. So each is told its own, in the order of the file. Pools that name
one `machine` share its GPUs, and their memory as they share its rate: vLLM takes over nine tenths
of what a GPU has, whoever else is on it.
"""

from collections.abc import Mapping, Sequence
from math import prod

from backends.engine.tuned import number
from gateway.config.machines import PPM, MachineShare
from gateway.config.settings import PoolSection
from gateway.runtime import EngineReplica

MEMORY = "--gpu-memory-utilization"
# Thousandths of a GPU's memory. vLLM's default is 920 (0.25.1), of one engine alone: each engine
# has a CUDA context of its own beside its part. Two of 420 on an H200 had their whole KV cache.
USUAL = 900
# Over how many GPUs flags spread one engine; the long form and the short one.
_SPREAD = (
    ("--tensor-parallel-size", "-tp"),
    ("--pipeline-parallel-size", "-pp"),
    ("--data-parallel-size", "-dp"),
)


def assign_gpus(
    seats: Sequence[EngineReplica], pools: Mapping[str, PoolSection], visible: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """GPUs by engine; nothing for any where they are fewer than the engines need together."""
    first: dict[str, int] = {}  # of a pool, or of a machine that pools share
    sizes: dict[str, int] = {}
    ours = [seat for seat in seats if seat.managed and not seat.simulated]
    for seat in ours:
        name = _group(pools[seat.pool], seat)
        needed = (_index(seat) + 1) * _gpus_of(pools[seat.pool], seat)
        sizes[name] = max(sizes.get(name, 0), needed)
    taken = 0
    for name, size in sizes.items():
        first[name] = taken
        taken += size
    if taken > len(visible):
        return {}
    found = {}
    for seat in ours:
        pool = pools[seat.pool]
        each = _gpus_of(pool, seat)
        begin = first[_group(pool, seat)] + _index(seat) * each
        found[seat.name] = tuple(visible[begin : begin + each])
    return found


def memory(part: MachineShare, flags: Sequence[str]) -> tuple[str, ...]:
    """The flag that leaves the others on a shared GPU their part; a person's own flag goes before.

    Rounded down: together less than one engine alone would take.
    """
    if part.share_ppm == PPM or any(word.partition("=")[0] == MEMORY for word in flags):
        return ()
    return MEMORY, f"{USUAL * part.share_ppm // PPM / 1000:g}"


def _group(pool: PoolSection, seat: EngineReplica) -> str:
    return f"machine {pool.gpu.machine}" if pool.gpu.machine else f"pool {seat.pool}"


def _index(seat: EngineReplica) -> int:
    return int(seat.name.rpartition("/")[2])


def _gpus_of(pool: PoolSection, seat: EngineReplica) -> int:
    """GPUs under one replica: as its contract says, or as its flags spread it if that is more."""
    flags = (*seat.tuned, *pool.engine.flags)
    sizes = (next((n for name in names if (n := number(flags, name))), 1) for names in _SPREAD)
    return max(pool.gpu.count, prod(sizes))

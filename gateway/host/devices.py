"""Assignment of the host's GPUs to the engines that `serve` starts, with memory shares.

vLLM takes the first GPUs that it sees: without an assignment all replicas load into the same ones,
and the second finds no free memory. So each gets its own, in file order. Pools that name one
`machine` share its GPUs, and their memory in proportion to their share of the rate: by default vLLM
takes over nine tenths of a GPU, whatever else runs on it.
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
# Flags that spread an engine over GPUs, in long and short form.
_SPREAD = (
    ("--tensor-parallel-size", "-tp"),
    ("--pipeline-parallel-size", "-pp"),
    ("--data-parallel-size", "-dp"),
)


def assign_gpus(
    seats: Sequence[EngineReplica], pools: Mapping[str, PoolSection], visible: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """Return GPUs by engine; empty if there are fewer GPUs than the engines need together."""
    first: dict[str, int] = {}  # by pool, or by machine that pools share
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
    """Return the memory flag for a shared GPU; a user's own flag takes precedence.

    The value is rounded down: all engines together take less than a single one would.
    """
    if part.share_ppm == PPM or any(word.partition("=")[0] == MEMORY for word in flags):
        return ()
    return MEMORY, f"{USUAL * part.share_ppm // PPM / 1000:g}"


def _group(pool: PoolSection, seat: EngineReplica) -> str:
    return f"machine {pool.gpu.machine}" if pool.gpu.machine else f"pool {seat.pool}"


def _index(seat: EngineReplica) -> int:
    return int(seat.name.rpartition("/")[2])


def _gpus_of(pool: PoolSection, seat: EngineReplica) -> int:
    """Return the GPUs of one replica: the contract's count, or that of its flags if larger."""
    flags = (*seat.tuned, *pool.engine.flags)
    sizes = (next((n for name in names if (n := number(flags, name))), 1) for names in _SPREAD)
    return max(pool.gpu.count, prod(sizes))

"""Values that `serve` resolved from the settings: ports, paths and table rows.

The parent writes them to `run/runtime.json` before it starts its children. Workers read this file
and never derive an address or a row of the shared load table themselves.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from backends.engine.tuned import number, read, remove_flags
from backends.engines import ENGINE_KINDS
from gateway.config.kv_event_address import kv_events_address
from gateway.config.pool_seats import PoolSeat, SeatRole, seats_of
from gateway.config.settings import EngineSection, PoolSection, Settings
from gateway.config.step_promises import (
    VLLM_LIMITS,
    PoolSteps,
    is_started,
    profile_steps,
    started_steps,
)
from gateway.table_layout import TableLayout

SEQUENCES, BUDGET = "--max-num-seqs", "--max-num-batched-tokens"
METRICS_DIR = "metrics"  # in the run directory: metrics of all workers, readable by each of them


class EngineReplica(msgspec.Struct, frozen=True):
    """One own engine replica: its address, limits and role, and whether `serve` runs it."""

    name: str  # "pool:chat/0"
    pool: str
    base_url: str  # with /v1
    managed: bool
    simulated: bool
    served_name: str
    max_num_seqs: int
    prefill_budget_tokens: int
    tuned: tuple[str, ...] = ()  # flags of the pool's profile, placed before its own
    dialect: str | None = None  # format of its metrics page; `None`: detected from the metric names
    kv_capacity_tokens: int = 0  # if its metrics do not report it; 0: unknown
    kv_events: str | None = None  # address of its KV cache events
    role: SeatRole = "whole"
    side: str | None = None  # HOST:PORT at which a managed engine offers its KV
    lease_s: int = 0  # after which KV that was not fetched is freed


class Runtime(msgspec.Struct, frozen=True):
    workers: int
    state_dir: str
    ledger_url: str
    policy_version: str
    engines: tuple[EngineReplica, ...]
    apis: tuple[str, ...]  # "openai/gpt-4o-mini", "openai/*"
    providers: dict[str, str | None]  # resolved base URLs, with /v1
    host: str  # host name in the ledger
    peers: bool = False  # whether hosts exchange their in-flight load

    def __repr__(self) -> str:
        """Return a text without the ledger's URL, which may contain a password."""
        return f"Runtime(state_dir={self.state_dir!r})"

    @property
    def run_dir(self) -> Path:
        return Path(self.state_dir) / "run"

    @property
    def journal_dir(self) -> Path:
        return Path(self.state_dir) / "journal"

    @property
    def restart_orders(self) -> Path:
        """Return the folder in which a file named after an engine's row requests its restart."""
        return self.run_dir / "restart"

    @property
    def layout(self) -> TableLayout:
        return TableLayout(
            workers=self.workers,
            engines=tuple(seat.name for seat in self.engines),
            apis=self.apis,
            peers=self.peers,
        )

    def save(self) -> Path:
        path = self.run_dir / "runtime.json"
        path.touch(mode=0o600)  # the ledger's URL may hold a password
        path.write_bytes(msgspec.json.encode(self))
        return path

    @staticmethod
    def load(path: Path) -> "Runtime":
        return msgspec.json.decode(path.read_bytes(), type=Runtime)


@dataclass(frozen=True, slots=True)
class RuntimePorts:
    """Free ports that the parent found for each managed engine and simulated provider."""

    engines: dict[str, int]
    providers: dict[str, int]
    sides: dict[str, int] = field(default_factory=dict)  # of engines in roles


def resolve_runtime(
    settings: Settings,
    ports: RuntimePorts,
    *,
    ledger_url: str,
    policy_version: str,
    host: str = "host",
    measured: Mapping[str, PoolSteps] | None = None,
) -> Runtime:
    """Combine the settings with the ports of the engines and providers that `serve` starts.

    `measured` maps pools to step times from the ledger. The TPOT promised by a pool's policies
    limits the step size of engines that `serve` starts.
    """
    seats: list[EngineReplica] = []
    for pool_name, pool in settings.pools.items():
        engine, tuned = pool.engine, tuned_flags(pool.engine)
        limits = batch_limits(engine, tuned)
        steps = (measured or {}).get(pool_name) or profile_steps(settings, pool_name)
        if steps is not None and is_started(settings, pool_name):
            steps = started_steps(
                settings,
                pool_name,
                steps._replace(max_num_seqs=limits[0], budget_tokens=limits[1]),
            )
            limits = steps.max_num_seqs, steps.budget_tokens
        for seat in seats_of(pool):
            name = f"pool:{pool_name}/{seat.number}"
            url = seat.url
            seats.append(
                EngineReplica(
                    name=name,
                    pool=pool_name,
                    base_url=f"http://127.0.0.1:{ports.engines[name]}/v1"
                    if url is None
                    else url.rstrip("/"),
                    managed=url is None,
                    simulated=ENGINE_KINDS[engine.kind].simulated,
                    served_name=engine.served_name or pool_name,
                    max_num_seqs=limits[0],
                    prefill_budget_tokens=_budget(seat, limits[1]),
                    tuned=tuned,
                    dialect=None if url is None or engine.metrics == "auto" else engine.metrics,
                    kv_capacity_tokens=engine.kv_capacity_tokens or 0,
                    kv_events=kv_events_address(settings, pool_name, seat.number),
                    role=seat.role,
                    side=_side(pool, ports.sides.get(name)),
                    lease_s=0 if pool.roles is None else pool.roles.lease_s,
                )
            )
    providers = {
        name: f"http://127.0.0.1:{ports.providers[name]}/v1"
        if provider.start
        else provider.base_url
        for name, provider in settings.providers.items()
    }
    return Runtime(
        workers=settings.server.workers,
        state_dir=settings.state_dir,
        ledger_url=ledger_url,
        policy_version=policy_version,
        engines=tuple(seats),
        apis=_apis(settings),
        providers=providers,
        host=host,
        peers=bool(settings.peers.hosts),
    )


def _budget(seat: PoolSeat, chosen: int) -> int:
    """Return the prefill tokens of one step; the seat's own budget has precedence.

    A prefill engine has its own budget, because no decoding request waits for its steps.
    """
    return chosen if seat.budget_tokens is None else seat.budget_tokens


def _side(pool: PoolSection, port: int | None) -> str | None:
    return None if pool.roles is None or port is None else f"{pool.roles.side_host}:{port}"


def tuned_flags(engine: EngineSection) -> tuple[str, ...]:
    """Return the flags of the engine's profile that the settings do not override.

    Raises `ProfileError` for a profile that cannot be read.
    """
    if engine.profile is None or not ENGINE_KINDS[engine.kind].takes_profile:
        return ()
    stated = [*engine.flags]
    stated += [SEQUENCES] if engine.max_num_seqs else []
    stated += [BUDGET] if engine.prefill_budget_tokens else []
    return remove_flags(read(Path(engine.profile)).flags, stated)


def batch_limits(engine: EngineSection, tuned: tuple[str, ...] = ()) -> tuple[int, int]:
    """Return (sequences, tokens) of one batch.

    The order is: settings, profile of a simulated engine, tuned flags, defaults of vLLM.
    """
    seqs, budget = VLLM_LIMITS
    seqs, budget = number(tuned, SEQUENCES) or seqs, number(tuned, BUDGET) or budget
    known = ENGINE_KINDS[engine.kind].profile(engine.model)
    if known is not None:
        seqs, budget = known.shape.max_num_seqs, known.shape.prefill_budget_tokens
    return engine.max_num_seqs or seqs, engine.prefill_budget_tokens or budget


def _apis(settings: Settings) -> tuple[str, ...]:
    named = {
        target
        for model in settings.models.values()
        if model != "passthrough"
        for target in model.reachable
        if not target.startswith("pool:")
    }
    return (*sorted(named), *(f"{name}/*" for name in sorted(settings.providers)))

"""The values that `serve` resolved from settings: ports, paths and shared rows.

The parent writes it once to `run/runtime.json` before it starts its children; a worker never
derives an address or a board row on its own.
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
METRICS_DIR = "metrics"  # in the run directory: what workers count, for any of them to tell


class EngineReplica(msgspec.Struct, frozen=True):
    """One own engine replica: where it answers, and whether `serve` runs it."""

    name: str  # "pool:chat/0"
    pool: str
    base_url: str  # with /v1
    managed: bool
    simulated: bool
    served_name: str
    max_num_seqs: int
    prefill_budget_tokens: int
    tuned: tuple[str, ...] = ()  # flags of the pool's profile, which go before its own
    dialect: str | None = None  # whose metrics page it has; `None`: its names tell
    kv_capacity_tokens: int = 0  # where its metrics do not tell; 0: not known here either
    kv_events: str | None = None  # the address of what it tells of its prefix cache
    role: SeatRole = "whole"
    side: str | None = None  # where one that is started here offers its KV: HOST:PORT
    lease_s: int = 0  # after which KV that nobody fetched is freed


class Runtime(msgspec.Struct, frozen=True):
    workers: int
    state_dir: str
    ledger_url: str
    policy_version: str
    engines: tuple[EngineReplica, ...]
    apis: tuple[str, ...]  # "openai/gpt-4o-mini", "openai/*"
    providers: dict[str, str | None]  # resolved base URLs, with /v1
    host: str  # what it is called in the books
    peers: bool = False  # whether hosts exchange what they have in flight

    def __repr__(self) -> str:
        """Without the ledger's address, which may hold a password."""
        return f"Runtime(state_dir={self.state_dir!r})"

    @property
    def run_dir(self) -> Path:
        return Path(self.state_dir) / "run"

    @property
    def journal_dir(self) -> Path:
        return Path(self.state_dir) / "journal"

    @property
    def restart_orders(self) -> Path:
        """Return the folder in which a file named by an engine's row orders a restart."""
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
    """Free ports that the parent found: per managed engine and per simulated provider."""

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
    """Join settings with the ports found for what `serve` starts itself.

    `measured`: how long the steps of pools take, where the books know it: what their policies
    promise for a token limits the steps of engines that are started here.
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
    """Tokens of one step: nobody's next token waits for a step of an engine that only prefills."""
    return chosen if seat.budget_tokens is None else seat.budget_tokens


def _side(pool: PoolSection, port: int | None) -> str | None:
    return None if pool.roles is None or port is None else f"{pool.roles.side_host}:{port}"


def tuned_flags(engine: EngineSection) -> tuple[str, ...]:
    """Those of its profile that the settings do not overrule; raises `ProfileError`."""
    if engine.profile is None or not ENGINE_KINDS[engine.kind].takes_profile:
        return ()
    stated = [*engine.flags]
    stated += [SEQUENCES] if engine.max_num_seqs else []
    stated += [BUDGET] if engine.prefill_budget_tokens else []
    return remove_flags(read(Path(engine.profile)).flags, stated)


def batch_limits(engine: EngineSection, tuned: tuple[str, ...] = ()) -> tuple[int, int]:
    """(sequences, tokens) of one batch: as configured, else a simulated profile's, else vLLM's."""
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

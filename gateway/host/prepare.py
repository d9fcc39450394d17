"""Preparation before any child starts: directories, ledger, prices, contracts, ports.

It runs once in the parent. The results are written to `run/runtime.json`, next to a copy of the
configuration: a process that is restarted while the file is edited reads the same one as all
others. All writes are idempotent, so a restart changes nothing that the file does not change.
"""

import os
import shutil
import socket
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Engine

from backends.engine.ports import other_listener
from gateway.batches.authority import make_secret
from gateway.clock import Clock
from gateway.config.ledger_address import ledger_url
from gateway.config.pool_seats import seats_of
from gateway.config.settings import Settings, version
from gateway.config.state_errors import translate_state_errors
from gateway.config.statedir import DIRECTORIES
from gateway.config.step_promises import measured_steps
from gateway.control.whatif_jobs import WHAT_IFS
from gateway.errors import ConfigError
from gateway.fleet.prefix_index import PREFIXES_FILE
from gateway.fleet.provider_caches import PROVIDER_CACHES_FILE
from gateway.host.declared_books import declare_configuration
from gateway.host.port_claims import PortClaims
from gateway.runtime import METRICS_DIR, Runtime, RuntimePorts, resolve_runtime
from gateway.scaling.reconcile import FindingKind
from ledger.database import check_durable, make_engine, migrate
from ledger.declared import other_billed_pools
from ledger.fleet.scaling_notes import ScalingNote, read_scaling, write_scaling
from ledger.hosts import HostConflict, claim_name, claim_of
from ledger.identity.pepper import PepperMismatch, agreed_pepper
from ledger.identity.secretfile import read_or_create_secret
from ledger.identity.vouchers import KEY_FILE
from ledger.queries.fleet import capacities

CONFIG_FILE = "config.yaml"  # in the run directory
SIDE_PORTS = 16  # ports reserved for one engine's side channel: each rank may take one


@dataclass(frozen=True, slots=True)
class HostSetup:
    runtime: Runtime
    ports: RuntimePorts
    path: Path
    config: Path  # copy for this run, independent of later edits
    prices_waiting: int = 0  # names for which the bundled map has another price
    billed_besides: Sequence[str] = ()  # pools of the ledger that the configuration lacks


def prepare(
    settings: Settings,
    config: Path,
    environ: Mapping[str, str] = os.environ,
    claims: PortClaims | None = None,
) -> HostSetup:
    """Prepare state directory and ledger. Raises `ConfigError` or `DatabaseError`.

    `claims` reserve the chosen ports against other hosts until engines bind them.
    """
    with translate_state_errors(settings):
        return _prepare(settings, config, environ, claims)


def _prepare(
    settings: Settings, config: Path, environ: Mapping[str, str], claims: PortClaims | None
) -> HostSetup:
    state = settings.state.resolve()
    for name in DIRECTORIES:
        (state / name).mkdir(parents=True, exist_ok=True, mode=0o700)
    _forget_last_run(state / "run")
    url = ledger_url(settings, environ)
    migrate(url)
    engine = make_engine(url)
    check_durable(engine)
    at_us, text = Clock().wall_us(), config.read_text(encoding="utf-8")
    prices = declare_configuration(engine, settings, text, at_us)
    with engine.connect() as connection:
        besides = other_billed_pools(connection, settings.pools, at_us)
        measured = measured_steps(capacities(connection))
    host = _agree_identity(engine, state)
    engine.dispose()
    read_or_create_secret(state / KEY_FILE)
    ports = find_ports(settings, claims)
    runtime = resolve_runtime(
        settings.model_copy(update={"state_dir": str(state)}),
        ports,
        ledger_url=url,
        policy_version=version(settings),
        host=host,
        measured=measured,
    )
    kept = _write_private(runtime.run_dir / CONFIG_FILE, text)
    _announce_fleets(settings, runtime.run_dir, at_us)
    return HostSetup(runtime, ports, runtime.save(), kept, prices.waiting, besides)


def _write_private(path: Path, text: str) -> Path:
    path.touch(mode=0o600)  # private, like the files next to it
    path.write_text(text, encoding="utf-8")
    return path


def _announce_fleets(settings: Settings, run_dir: Path, at_us: int) -> None:
    """Write a note for each pool that sizes itself, so that its metrics exist from the start."""
    before = read_scaling(run_dir)
    if not before and all(pool.scale is None for pool in settings.pools.values()):
        return
    from gateway.scaling.pool_setup import pool_setups  # noqa: PLC0415  (few hosts size a pool)

    notes = [
        before.get(setup.pool)
        or ScalingNote(
            setup.pool,
            setup.section.mode,
            setup.places,
            setup.places,
            0,
            seen_us=at_us,
            findings={kind.value: 0 for kind in FindingKind},
        )
        for setup in pool_setups(settings)
    ]
    write_scaling(run_dir, notes)


def _agree_identity(engine: Engine, state: Path) -> str:
    """Agree on the key pepper and claim this host's name with all hosts on the ledger."""
    try:
        with engine.begin() as connection:
            agreed_pepper(connection, state)
        return claim_name(engine, claim_of(state), socket.gethostname())
    except (PepperMismatch, HostConflict) as error:
        raise ConfigError([f"state_dir: {error}"]) from error


def find_ports(settings: Settings, claims: PortClaims | None = None) -> RuntimePorts:
    """Return the configured port of every managed engine if it is free, else any free port.

    A port claimed by another host is not free, even before its engine listens there.
    """
    engines: dict[str, int] = {}
    providers: dict[str, int] = {}
    sides: dict[str, int] = {}
    with ExitStack() as taken:  # held until all are chosen, so that no port is chosen twice
        if claims is None:
            claims = taken.enter_context(PortClaims())
        for name, pool in settings.pools.items():
            side = 0 if pool.roles is None else pool.roles.side_port
            for seat in seats_of(pool):
                if seat.port_index is None:
                    continue
                wanted = pool.engine.port + seat.port_index if pool.engine.port else 0
                engines[f"pool:{name}/{seat.number}"] = _port(taken, claims, wanted)
                if seat.role != "whole":
                    sides[f"pool:{name}/{seat.number}"] = _port(taken, claims, side)
                    side += SIDE_PORTS if side else 0
        for name, provider in settings.providers.items():
            if provider.start:
                providers[name] = _port(taken, claims, 0)
    return RuntimePorts(engines, providers, sides)


def moved_ports(settings: Settings, found: RuntimePorts) -> list[str]:
    """Return one line for each engine whose configured port is taken."""
    lines = []
    for name, pool in settings.pools.items():
        for seat in seats_of(pool) if pool.engine.port else ():
            if seat.port_index is None:
                continue
            wanted = pool.engine.port + seat.port_index
            got = found.engines[f"pool:{name}/{seat.number}"]
            if got != wanted:
                who = other_listener(wanted) or "another host of this machine"
                lines.append(
                    f"pool:{name}/{seat.number} starts on port {got}: {wanted}, by "
                    f"pools.{name}.engine.port, is taken by {who}"
                )
    return lines


def _port(taken: ExitStack, claims: PortClaims, wanted: int) -> int:
    probe = taken.enter_context(socket.socket())
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # TIME_WAIT is no obstacle
    try:
        probe.bind(("127.0.0.1", wanted))
        probe.listen(1)
    except OSError:
        return _port(taken, claims, 0)
    port: int = probe.getsockname()[1]
    return port if claims.claim(port) else _port(taken, claims, 0)


def _forget_last_run(run: Path) -> None:
    """Delete counters and promises of an earlier run; the key generation continues."""
    shutil.rmtree(run / METRICS_DIR, ignore_errors=True)
    (run / METRICS_DIR).mkdir(mode=0o700)
    shutil.rmtree(run / WHAT_IFS, ignore_errors=True)
    for shared in ("board", PREFIXES_FILE, PROVIDER_CACHES_FILE):
        (run / shared).unlink(missing_ok=True)
    make_secret(run)

"""Scaling process: `python -m gateway.host.scaling --config FILE --runtime FILE`.

It sizes pools by dollars; one per host, and only if a pool asks for it. Of all hosts that share a
ledger, the holder of a pool's lease plans and acts. Without the ledger no host acts, and engines
stay as they are.
"""

import logging
import os
import secrets
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import msgspec
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from gateway.clock import Clock
from gateway.config.settings import Settings
from gateway.control.admin.enginehost import EngineHost
from gateway.fleet.shared_load import SharedLoadTable
from gateway.process import start_process
from gateway.runtime import Runtime
from gateway.scaling.actuator import ActuatorError, FleetActuator
from gateway.scaling.command_actuator import CommandActuator
from gateway.scaling.fleet_probe import EngineProbe
from gateway.scaling.keda_actuator import KedaActuator
from gateway.scaling.kubernetes_actuator import ClusterAccess, KubernetesActuator
from gateway.scaling.pool_scaler import PoolScaler, ScalerPlace
from gateway.scaling.pool_setup import PoolSetup, pool_setups
from gateway.scaling.supervisor_actuator import SupervisorActuator
from ledger.database import make_engine
from ledger.fleet.fleet_lease import give_lease_back
from ledger.fleet.scaling_notes import ScalingNote, read_scaling, write_scaling
from ledger.writing.lag import read_lag
from router.scaling.plan import PoolTerms, SizesFleet
from router.scaling.planner import FleetPlanner

log = logging.getLogger("breakeven.scaling")
MakesPlanner = Callable[[PoolTerms, dict[str, Any] | None], SizesFleet]


class ScalingLoop:
    """Loop that steps each pool in turn and writes notes for metrics and pages."""

    def __init__(
        self,
        settings: Settings,
        runtime: Runtime,
        board: SharedLoadTable,
        ledger: Engine,
        clock: Clock,
        planner: MakesPlanner | None = None,
    ) -> None:
        self._runtime, self._ledger, self._clock = runtime, ledger, clock
        self._planner = planner or make_planner
        self._holder = f"{runtime.host}:{os.getpid()}:{secrets.token_hex(4)}"
        self._setups = pool_setups(settings)
        host = EngineHost(settings, runtime, board)
        self._probes = {
            setup.pool: EngineProbe(host, settings, ledger, setup.pool, clock)
            for setup in self._setups
        }
        self._scalers = {
            setup.pool: PoolScaler(setup, self._place(setup, host)) for setup in self._setups
        }
        self._due_s = dict.fromkeys(self._scalers, 0.0)
        self._notes: dict[str, ScalingNote] = read_scaling(runtime.run_dir)
        self._words: dict[str, tuple[str, ...]] = {}

    def run(self) -> None:
        """Step until the process ends, then release the leases."""
        try:
            while True:
                self.step()
                time.sleep(max(0.05, min(self._due_s.values()) - self._clock.now_s()))
        finally:
            for pool in self._scalers:
                give_lease_back(self._ledger, pool, self._holder)

    def step(self) -> None:
        """Step the pools that are due."""
        for setup in self._setups:
            if self._clock.now_s() < self._due_s[setup.pool]:
                continue
            self._due_s[setup.pool] = self._clock.now_s() + setup.section.look_s
            try:
                note = self._scalers[setup.pool].step()
            except DBAPIError as error:
                log.warning(
                    "scaling pauses: cannot reach the ledger pool=%s error=%s",
                    setup.pool,
                    error.orig,
                )
                continue
            parked = self._parked(setup)
            self._notes[setup.pool] = msgspec.structs.replace(note, parked=parked)
            self._tell(setup.pool, note)
        kept = [self._notes[pool] for pool in self._scalers if pool in self._notes]
        write_scaling(self._runtime.run_dir, kept)

    def _parked(self, setup: PoolSetup) -> tuple[str, ...]:
        """Return engines from which the plan keeps requests; they cause no alerts."""
        if not setup.acts:
            return ()
        probe = self._probes[setup.pool]
        return tuple(probe.name(place) for place in probe.parked())

    def _tell(self, pool: str, note: ScalingNote) -> None:
        """Log the new findings."""
        for words in note.words:
            if words not in self._words.get(pool, ()):
                log.warning("scaling note pool=%s: %s", pool, words)
        self._words[pool] = note.words

    def _place(self, setup: PoolSetup, host: EngineHost) -> ScalerPlace:
        return ScalerPlace(
            ledger=self._ledger,
            probe=self._probes[setup.pool],
            actuator=make_actuator(setup, host, os.environ),
            clock=self._clock,
            holder=self._holder,
            planner=partial(self._planner, setup.pool_terms()),
            known_us=self._known_us,
        )

    def _known_us(self) -> int:
        """Return the time up to which this host's journals are in the ledger."""
        lag = read_lag(self._runtime.run_dir)
        return 0 if lag is None else lag.applied_us


def make_planner(terms: PoolTerms, memory: dict[str, Any] | None) -> SizesFleet:
    """Return a planner restored from its memory, or a new one if the memory is unreadable."""
    if memory:
        try:
            return FleetPlanner.from_memory(terms, memory)
        except (KeyError, TypeError, ValueError) as error:
            log.warning(
                "the stored forecast is invalid, starting without one pool=%s error=%s",
                terms.pool,
                error,
            )
    return FleetPlanner(terms)


def make_actuator(
    setup: PoolSetup, host: EngineHost, environ: Mapping[str, str]
) -> FleetActuator | None:
    """Return the actuator that starts and stops a pool's engines, or `None`."""
    section = setup.section.actuator
    if section.kind == "command":
        return CommandActuator(section, setup.pool, environ) if section.argv else None
    if section.in_cluster:
        make = KedaActuator if section.kind == "keda" else KubernetesActuator
        try:
            return make(section, ClusterAccess.from_environ(environ))
        except ActuatorError as error:
            log.warning(
                "scaling only advises: cannot start or stop engines pool=%s error=%s",
                setup.pool,
                error,
            )
            return None
    return SupervisorActuator(host, setup.pool)


def main(arguments: list[str] | None = None) -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    settings, runtime, *_ = start_process("gateway.host.scaling", "scaling", __doc__, arguments)
    board = SharedLoadTable(runtime.run_dir / "board", runtime.layout)
    ledger = make_engine(runtime.ledger_url)
    try:
        with answering_keda(settings, ledger):
            ScalingLoop(settings, runtime, board, ledger, Clock()).run()
    except KeyboardInterrupt:
        return


@contextmanager
def answering_keda(settings: Settings, ledger: Engine) -> Iterator[None]:
    """Serve KEDA inside the context, if a pool's replicas are controlled by KEDA."""
    acts = {
        setup.pool: setup.acts
        for setup in pool_setups(settings)
        if setup.section.actuator.kind == "keda"
    }
    if not acts or settings.server.keda_port is None:
        yield
        return
    from gateway.scaling.keda_scaler import KedaScaler, serve_keda  # noqa: PLC0415  (an extra)
    from gateway.scaling.ledger_orders import LedgerOrders  # noqa: PLC0415  (it imports the same)

    host = settings.server.host
    shown = f"[{host}]" if ":" in host else host
    orders = LedgerOrders(ledger, acts)
    server, _ = serve_keda(KedaScaler(orders), f"{shown}:{settings.server.keda_port}")
    try:
        yield
    finally:
        server.stop(None).wait()


if __name__ == "__main__":
    main()

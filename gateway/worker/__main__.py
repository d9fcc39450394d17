"""One gateway worker process: `python -m gateway.worker --config FILE --runtime FILE --worker N`.

It serves the listening socket it inherits from the parent. `/metrics` sums all workers: counters
live in files keyed by worker index, so a restarted worker continues them and none leaks. What the
host's other processes leave (the ledger's lag, engines) is added when it is rendered.
"""

import asyncio
import fcntl
import gc
import math
import os
import resource
import signal
import socket
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import prometheus_client.values
import uvicorn
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from backends.event_server import EventServer
from gateway.clock import Clock
from gateway.config.checks.provider_names import wire_of_provider
from gateway.config.settings import ServerSection, Settings, TimeoutsSection
from gateway.control.people import may_make_keys
from gateway.control.pricing.configured import price_aliases
from gateway.fleet.shared_load import SharedLoadTable
from gateway.http.access_log import AccessLog
from gateway.http.protocol import bounded_protocol
from gateway.ids import RequestIds
from gateway.kinds.rewritten_text import longer_characters
from gateway.process import start_process
from gateway.request.sockets.responses_sockets import is_socket_path
from gateway.runtime import METRICS_DIR, Runtime
from gateway.telemetry.metrics.fleet import FleetMetrics
from gateway.telemetry.metrics.gpus import GpuMetrics
from gateway.telemetry.metrics.host import HostMetrics
from gateway.telemetry.metrics.metric_files import allocate_metric_files
from gateway.worker.app import Gateway
from gateway.worker.bootstrap import MetricsExposition, build
from gateway.worker.cors import CorsPolicy
from gateway.worker.ledger_follow import LedgerReaders
from gateway.worker.threads import share_interpreter, start_threads
from ledger.database import open_readonly
from ledger.fleet.paidrates import read_rates
from ledger.identity.keys import KeyRing
from ledger.lengths import recent_lengths
from ledger.overrides import overrides
from ledger.policies import policies_in_force
from ledger.prices.stored import load_price_book, newer_prices

FILES_OWN = 128  # listener, journal, board, ledger, metrics, and what Python keeps open
STALL_MARGIN_S = 2.0  # who watches the answer itself comes first, and tells the books
FILES_LIMIT = 1_000_000  # where the system sets none


def compose(settings: Settings, runtime: Runtime, worker: int) -> Gateway:
    """Open the ledger for reading, and build the application."""
    directory = runtime.run_dir / METRICS_DIR
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(directory)
    allocate_metric_files(directory, worker)
    # The library's documented multiprocess mode, which it leaves untyped.
    values: Any = prometheus_client.values
    values.ValueClass = values.MultiProcessValue(lambda: worker)
    summed = CollectorRegistry()
    collector: Any = MultiProcessCollector
    collector(summed, path=str(directory))
    board = SharedLoadTable(runtime.run_dir / "board", runtime.layout)
    stale_s = settings.telemetry.stale_s
    summed.register(HostMetrics(runtime.run_dir, board, stale_s=stale_s, clock=Clock()))
    summed.register(GpuMetrics(runtime.run_dir, Clock()))
    if any(pool.scale is not None for pool in settings.pools.values()):
        summed.register(FleetMetrics(runtime.run_dir, Clock()))
    engine = open_readonly(runtime.ledger_url)  # a worker writes to its journal only
    return build(
        settings,
        runtime,
        worker,
        LedgerReaders(
            prices=load_price_book(engine, price_aliases(settings)),
            keys=KeyRing(
                engine,
                runtime.run_dir,
                Path(runtime.state_dir),
                end_with_maker=settings.self_service.when_maker_ends == "end",
                is_member=may_make_keys(settings),
            ),
            reader=engine,
            lengths=recent_lengths(engine),
            newer_prices=partial(newer_prices, engine),
            policies=partial(policies_in_force, engine),
            overrides=partial(overrides, engine),
            rates=partial(read_rates, engine),
        ),
        MetricsExposition(CollectorRegistry(), lambda: generate_latest(summed)),
        os.environ,
    )


def main(arguments: list[str] | None = None) -> None:
    settings, runtime, sink, given = start_process(
        "gateway.worker", "worker-{worker}", __doc__, arguments,
        worker="its number on this host", fd="the inherited listening socket",
    )  # fmt: skip
    load_ahead(settings)
    app = compose(settings, runtime, int(given.worker))
    sink.hide(app.secrets)
    listener = socket.socket(fileno=int(given.fd))
    serve(app, listener, settings.server, access=settings.logs.access)


def load_ahead(settings: Settings) -> None:
    """Load slow parts of a provider ahead: beside streams they would stop them all.

    Loaded now, it is frozen, too: the collector would walk it for a third of a second each time.
    The first prompt beyond ASCII would make its streams wait for a table of characters.
    """
    longer_characters()
    wires = [wire_of_provider(name, section) for name, section in settings.providers.items()]
    for load in dict.fromkeys(wire.load for wire in wires if wire.load is not None):
        load()


def serve(
    app: Gateway, listener: socket.socket, settings: ServerSection, *, access: bool = False
) -> None:
    gc.collect()
    gc.freeze()  # what lives for ever is not walked again
    # A look at 50,000 new objects stops all streams for 12 ms, one at 5,000 for 1.2 to 2 ms; every
    # 2.5 million one at all.
    gc.set_threshold(2_000, 1_250, 1_000)
    share_interpreter()
    most = min(settings.max_connections, clients_within(files_allowed()))
    reserve_file_table(2 * most + FILES_OWN)
    server(app, settings.timeouts, most=most, access=access).run(sockets=[listener])


def reserve_file_table(files: int) -> None:
    """For so many open files, before there are any.

    Linux doubles the table of a process with threads behind a grace period of all processors: 5 to
    20 ms at each of 64, 128, ... open files, for all streams.
    """
    ends = os.pipe()
    with suppress(ValueError, OSError):  # fewer are allowed: it grows as it did
        os.close(fcntl.fcntl(ends[0], fcntl.F_DUPFD_CLOEXEC, files - 1))
    for end in ends:
        os.close(end)


def files_allowed() -> int:
    """Open files that this process may have, once it has asked for all that it may ask for."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # the soft limit is 1024 on many systems
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft if soft != resource.RLIM_INFINITY else FILES_LIMIT


def clients_within(files: int) -> int:
    """Each client may need a connection to a target, and the worker files of its own."""
    return max(1, (files - FILES_OWN) // 2)


def server(
    app: Gateway, timeouts: TimeoutsSection, *, most: float = math.inf, access: bool = False
) -> uvicorn.Server:
    """The HTTP server as every worker runs it.

    `most`: connections of clients at once. `access`: whether each request is logged.
    """
    served: Any = CorsPolicy(app, app.origins, RequestIds()) if app.origins else app
    config = uvicorn.Config(
        AccessLog(served) if access else served,
        loop="uvloop",
        http=bounded_protocol(
            timeouts.receive_s,
            RequestIds(),
            most=most,
            stall_s=timeouts.client_stall_s + STALL_MARGIN_S,
            sockets=is_socket_path,
        ),
        ws="none",  # the protocol above begins them itself
        ws_max_size=app.message_bytes,
        ws_per_message_deflate=False,
        proxy_headers=False,
        access_log=False,
        server_header=False,
        log_config=None,  # as everything else is logged
        timeout_keep_alive=timeouts.keep_alive_s,  # type: ignore[arg-type]  # it adds it to a time
        timeout_graceful_shutdown=max(1, round(timeouts.drain_s)),
    )
    return _Server(config, app, timeouts.unready_s)


class _Server(EventServer):
    """Readiness goes false with the signal; the listener closes `unready_s` after it.

    SIGINT after that waits for nobody: who is still served is told. A second SIGTERM changes
    nothing, for systemd sends one to each process, and the parent sends its own.
    What runs beside the requests may fail: without it nobody is timed out, and no price or policy
    followed. Uvicorn would go on as if it were not needed; this ends, and is started again.
    """

    def __init__(self, config: uvicorn.Config, app: Gateway, unready_s: float) -> None:
        super().__init__(config)
        self._app = app
        self._unready_s = unready_s

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().set_default_executor(start_threads())
        await super().startup(sockets)

    async def on_tick(self, counter: int) -> bool:
        if getattr(self.lifespan, "error_occurred", False):
            self._app.hot.draining = True
            return True
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: Any) -> None:
        hot, loop = self._app.hot, asyncio.get_running_loop()
        end = partial(super().handle_exit, signal.SIGTERM, frame)
        if not hot.draining:
            hot.draining = True
            if self._unready_s:
                loop.call_soon_threadsafe(loop.call_later, self._unready_s, end)
            else:
                end()
        elif sig == signal.SIGINT:
            end()
            loop.call_soon_threadsafe(self._cut)

    def _cut(self) -> None:
        for task in self.server_state.tasks:
            task.cancel()


if __name__ == "__main__":
    main()

"""One worker process: `python -m gateway.worker --config FILE --runtime FILE --worker N`.

It serves the listening socket that it inherits from the parent. `/metrics` sums all workers: the
counters are files by worker index, so a restarted worker continues its predecessor's. Values that
other processes of the host publish (ledger lag, engines) are added when the page is rendered.
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

FILES_OWN = 128  # listener, journal, shared tables, ledger, metrics, Python's own files
STALL_MARGIN_S = 2.0  # the response's own stall timeout fires first and records the attempt's end
FILES_LIMIT = 1_000_000  # if the system sets no limit


def compose(settings: Settings, runtime: Runtime, worker: int) -> Gateway:
    """Open the ledger read-only and build the worker's application."""
    directory = runtime.run_dir / METRICS_DIR
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(directory)
    allocate_metric_files(directory, worker)
    # The documented multiprocess mode of the library, which has no types.
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
    engine = open_readonly(runtime.ledger_url)  # workers write only to their journals
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
    """Load slow modules of provider clients and the character table before serving.

    Loading them later would block all streams. Objects loaded now are also frozen: the garbage
    collector would otherwise need a third of a second to walk them, each time.
    """
    longer_characters()
    wires = [wire_of_provider(name, section) for name, section in settings.providers.items()]
    for load in dict.fromkeys(wire.load for wire in wires if wire.load is not None):
        load()


def serve(
    app: Gateway, listener: socket.socket, settings: ServerSection, *, access: bool = False
) -> None:
    gc.collect()
    gc.freeze()  # the collector skips permanent objects from now on
    # Collecting 50,000 new objects blocks all streams for 12 ms, 5,000 for 1.2 to 2 ms. A full
    # collection runs every 2.5 million objects.
    gc.set_threshold(2_000, 1_250, 1_000)
    share_interpreter()
    most = min(settings.max_connections, clients_within(files_allowed()))
    reserve_file_table(2 * most + FILES_OWN)
    server(app, settings.timeouts, most=most, access=access).run(sockets=[listener])


def reserve_file_table(files: int) -> None:
    """Extend the process's file table to `files` entries before any are open.

    Linux doubles the table of a multi-threaded process after an RCU grace period. This blocks all
    streams for 5 to 20 ms at each of 64, 128, ... open files.
    """
    ends = os.pipe()
    with suppress(ValueError, OSError):  # fewer files are allowed: the table grows on demand
        os.close(fcntl.fcntl(ends[0], fcntl.F_DUPFD_CLOEXEC, files - 1))
    for end in ends:
        os.close(end)


def files_allowed() -> int:
    """Raise the soft limit of open files to the hard limit, and return it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # the soft limit is 1024 on many systems
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft if soft != resource.RLIM_INFINITY else FILES_LIMIT


def clients_within(files: int) -> int:
    """Return the maximum client connections for this many files.

    A client may need two, one of them to a target; `FILES_OWN` are reserved for the worker.
    """
    return max(1, (files - FILES_OWN) // 2)


def server(
    app: Gateway, timeouts: TimeoutsSection, *, most: float = math.inf, access: bool = False
) -> uvicorn.Server:
    """Return the HTTP server of a worker.

    `most` limits client connections. `access` enables the access log.
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
        ws="none",  # `bounded_protocol` handles WebSockets itself
        ws_max_size=app.message_bytes,
        ws_per_message_deflate=False,
        proxy_headers=False,
        access_log=False,
        server_header=False,
        log_config=None,  # uses the process's logging
        timeout_keep_alive=timeouts.keep_alive_s,  # type: ignore[arg-type]  # it adds it to a time
        timeout_graceful_shutdown=max(1, round(timeouts.drain_s)),
    )
    return _Server(config, app, timeouts.unready_s)


class _Server(EventServer):
    """Server that becomes unready at the first signal and stops to listen `unready_s` later.

    A later SIGINT ends open requests at once, with an error response. A second SIGTERM has no
    effect, because systemd sends one to each process and the parent sends another. If a background
    task fails, this process ends and is restarted; uvicorn would keep serving without timeouts and
    price updates.
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

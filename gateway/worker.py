"""One gateway worker process: `python -m gateway.worker --config FILE --runtime FILE --worker N`.

It serves the listening socket it inherits from the parent. `/metrics` sums all workers: counters
live in files keyed by worker index, so a restarted worker continues them and none leaks. What the
host's other processes leave (the ledger's lag, engines) is added when it is rendered.
"""

import argparse
import gc
import os
import socket
from pathlib import Path
from typing import Any

import prometheus_client.values
import uvicorn
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from gateway.app import Gateway
from gateway.bootstrap import Exposition, Ledger, build
from gateway.clock import Clock
from gateway.hostmetrics import HostMetrics
from gateway.ids import RequestIds
from gateway.prices import price_aliases
from gateway.protocol import bounded
from gateway.runtime import Runtime
from gateway.settings import Settings, Timeouts, load
from gateway.slots import Board
from ledger.book import load_price_book
from ledger.database import open_readonly
from ledger.identity import KeyRing
from ledger.lengths import recent_lengths

METRICS_DIR = "metrics"


def compose(settings: Settings, runtime: Runtime, worker: int) -> Gateway:
    """Open the ledger for reading, and build the application."""
    directory = runtime.run_dir / METRICS_DIR
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(directory)
    # The library's documented multiprocess mode, which it leaves untyped.
    values: Any = prometheus_client.values
    values.ValueClass = values.MultiProcessValue(lambda: worker)
    summed = CollectorRegistry()
    collector: Any = MultiProcessCollector
    collector(summed, path=str(directory))
    board = Board(runtime.run_dir / "board", runtime.layout)
    stale_s = settings.telemetry.stale_s
    summed.register(HostMetrics(runtime.run_dir, board, stale_s=stale_s, clock=Clock()))
    engine = open_readonly(runtime.ledger_url)  # a worker writes to its journal only
    return build(
        settings,
        runtime,
        worker,
        Ledger(
            prices=load_price_book(engine, price_aliases(settings)),
            keys=KeyRing(engine, runtime.run_dir, Path(runtime.state_dir)),
            lengths=recent_lengths(engine),
        ),
        Exposition(CollectorRegistry(), lambda: generate_latest(summed)),
        os.environ,
    )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m gateway.worker", description=__doc__)
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--runtime", type=Path, required=True)
    parser.add_argument("--worker", type=int, required=True)
    parser.add_argument("--fd", type=int, required=True, help="the inherited listening socket")
    given = parser.parse_args(arguments)
    settings = load(given.config)
    app = compose(settings, Runtime.load(given.runtime), given.worker)
    serve(app, socket.socket(fileno=given.fd), settings.server.timeouts)


def serve(app: Gateway, listener: socket.socket, timeouts: Timeouts) -> None:
    gc.collect()
    gc.freeze()  # what lives for ever is not walked again
    gc.set_threshold(50_000, 50, 1000)
    server(app, timeouts).run(sockets=[listener])


def server(app: Gateway, timeouts: Timeouts) -> uvicorn.Server:
    """The HTTP server as every worker runs it."""
    config = uvicorn.Config(
        app,
        loop="uvloop",
        http=bounded(timeouts.receive_s, RequestIds()),
        ws="none",
        proxy_headers=False,
        access_log=False,
        server_header=False,
        log_level="warning",
        timeout_graceful_shutdown=max(1, round(timeouts.drain_s)),
    )
    return _Server(config, app)


class _Server(uvicorn.Server):
    """Readiness goes false with the signal, before the listener closes."""

    def __init__(self, config: uvicorn.Config, app: Gateway) -> None:
        super().__init__(config)
        self._app = app

    def handle_exit(self, sig: int, frame: Any) -> None:
        self._app.hot.draining = True
        super().handle_exit(sig, frame)


if __name__ == "__main__":
    main()

"""Work common to all processes of a host, done once before any is forked.

It needs neither configuration nor secrets: imports, the validators of the settings, the limits of
the bundled price map. It starts no thread and leaves no file open.
"""

import gc
import importlib

MODULES = (
    "gateway.worker.__main__", "gateway.host.telemetry", "gateway.host.log_wrapper",
    "ledger.writer",
    # Imported by their libraries no sooner than a worker builds its application and serves it.
    "pydantic.v1", "uvicorn.loops.uvloop", "uvicorn.lifespan.on",
)  # fmt: skip


def do_shared_work() -> None:
    """Import and build everything, then exempt it from garbage collection."""
    gc.disable()  # collections during imports take a twentieth of the time and free nothing
    for name in MODULES:
        importlib.import_module(name)
    importlib.import_module("gateway.config.settings").Settings.model_rebuild()
    importlib.import_module("ledger.prices.modellimits").model_limits()
    gc.freeze()
    gc.enable()

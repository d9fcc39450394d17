"""Work that each process of a host would do alike is done once here, before any is forked.

It needs nothing of the configuration and no secret: imports, the validators of the settings, the
limits in the bundled map. It starts no thread and leaves no file open.
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
    """Import, build and read; what is there then is looked through by no collector."""
    gc.disable()  # what is imported stays: to walk it in between is a twentieth of the time
    for name in MODULES:
        importlib.import_module(name)
    importlib.import_module("gateway.config.settings").Settings.model_rebuild()
    importlib.import_module("ledger.prices.modellimits").model_limits()
    gc.freeze()
    gc.enable()

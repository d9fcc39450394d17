"""A gateway for what is run by hand: `record.py` and `suites.py`."""

import importlib.util
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from loop_config import KEY_VARIABLE, config_of
from loop_upstream import LoopUpstream


@contextmanager
def opened_gateway(
    models: dict[str, Any], providers: dict[str, Any] | None = None
) -> Iterator[tuple[Any, Path]]:
    """A gateway in front of the upstream that makes clients run a tool, and a folder."""
    place = Path(__file__).parent.parent / "conftest.py"
    spec = importlib.util.spec_from_file_location("shared", place)
    assert spec is not None
    shared = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(shared)
    with LoopUpstream() as upstream, tempfile.TemporaryDirectory() as folder:
        config = config_of(upstream.port)
        config["models"] |= models
        config["providers"] |= providers or {}
        gateway = shared.Gateway(Path(folder), config, {KEY_VARIABLE: "any"})
        try:
            yield gateway, Path(folder)
        finally:
            gateway.stop()

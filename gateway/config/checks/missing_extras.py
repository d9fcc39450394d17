"""Check that the packages of an extra are installed if a section needs them.

Otherwise a worker would end at each start, because the plain wheel does not contain them.
"""

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Final, NamedTuple

from gateway.config.faults import ConfigFault, Place
from gateway.config.schema import PoolSection, Settings


class PackageExtra(NamedTuple):
    """Extra of `pyproject.toml`, the modules it installs, and the setting that needs them."""

    name: str
    modules: tuple[str, ...]
    place: Place
    is_needed: Callable[[Settings], bool]


def _asks_keda(pool: PoolSection) -> bool:
    """Return whether KEDA sets how many engines of a pool run."""
    return pool.scale is not None and pool.scale.actuator.kind == "keda"


EXTRAS: Final = (
    PackageExtra(
        "opentelemetry",
        ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"),
        ("opentelemetry", "endpoint"),
        lambda settings: settings.opentelemetry.endpoint is not None,
    ),
    PackageExtra(
        "dashboard",
        ("streamlit", "altair"),
        ("dashboard", "enabled"),
        lambda settings: settings.dashboard.enabled,
    ),
    PackageExtra(
        "keda",
        ("grpc", "google.protobuf"),
        ("server", "keda_port"),
        lambda settings: (
            settings.server.keda_port is not None and any(map(_asks_keda, settings.pools.values()))
        ),
    ),
)


def is_installed(module: str) -> bool:
    """Return whether a module can be found, without importing it (only its parent packages)."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def check_extras(
    settings: Settings, installed: Callable[[str], bool] = is_installed
) -> Iterator[ConfigFault]:
    """Yield a fault for each section whose extra is not installed here."""
    for extra in EXTRAS:
        if extra.is_needed(settings) and not all(map(installed, extra.modules)):
            words = "needs packages that are not installed here: `pip install "
            words += f"'breakeven[{extra.name}]'`, or the wheel's file with `[{extra.name}]` behind"
            yield ConfigFault(extra.place, words)

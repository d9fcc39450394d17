"""Reload on SIGHUP: the configuration file is read again, and price changes are applied.

Prices of `prices` files are stored, and workers follow within seconds. Everything else, including
the contents of providers' key files, needs a restart and is listed. A file with errors changes
nothing.
"""

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from gateway.clock import Clock
from gateway.config.examination import examine
from gateway.config.settings import Settings
from gateway.control.pricing.configured import store_prices
from gateway.errors import ConfigError
from ledger.database import make_engine

POLICIES = "`breakeven policy apply FILE` puts them in force at once, a restart does as well"


class Reload:
    """Reload handler of a host. `settings` are those that the host was started with."""

    def __init__(
        self, settings: Settings, config: Path, ledger_url: str, say: Callable[[str], None]
    ) -> None:
        self._settings = settings
        self._config = config
        self._ledger_url = ledger_url
        self._say = say
        self._keys = key_digests(settings)
        self._turn = asyncio.Lock()

    async def run(self) -> None:
        """Read the file and report the result in lines for people."""
        async with self._turn:
            for line in await asyncio.to_thread(self._read_again):
                self._say(f"SIGHUP: {line}")

    def _read_again(self) -> list[str]:
        try:
            examined = examine(self._config, at_us=Clock().wall_us())
            if examined.settings is None:
                return [*examined.lines, f"{self._config} has errors: nothing was changed"]
            stored = self._store(examined.settings)
        except (ConfigError, DBAPIError, OSError) as error:
            return [f"{self._config} was not reloaded, nothing was changed: {error}"]
        return [
            f"{stored} new prices of {self._config} are in force",
            *changed_sections(self._settings, examined.settings, self._changed_keys()),
        ]

    def _changed_keys(self) -> list[str]:
        """Return the settings of key files whose key changed since the start."""
        read = key_digests(self._settings)
        return [place for place, digest in self._keys.items() if read[place] != digest]

    def _store(self, settings: Settings) -> int:
        engine = make_engine(self._ledger_url)
        try:
            return store_prices(settings, engine, Clock().wall_us()).stored
        finally:
            engine.dispose()


def key_digests(settings: Settings) -> dict[str, bytes]:
    """Return a digest of each provider's key file by setting; unreadable files count as empty."""
    found = {}
    for name, provider in settings.providers.items():
        if provider.api_key_file is not None:
            try:
                text = Path(provider.api_key_file).read_bytes()
            except OSError:
                text = b""
            found[f"providers.{name}.api_key_file"] = hashlib.sha256(text.strip()).digest()
    return found


def changed_sections(running: Settings, read: Settings, keys: Sequence[str] = ()) -> list[str]:
    """Return lines with the sections that differ from the running ones, and what each needs.

    `keys` lists settings of key files whose content differs.
    """
    differ = [
        name
        for name in type(read).model_fields
        if getattr(read, name) != getattr(running, name) and name != "prices"
    ]
    lines = [f"policies differ from those of the start: {POLICIES}"] if "policies" in differ else []
    if others := [name for name in differ if name != "policies"]:
        lines.append(f"needs a restart of `breakeven serve`: {', '.join(sorted(others))}")
    if keys:
        lines.append(f"another key needs a restart of `breakeven serve`: {', '.join(keys)}")
    return lines or ["nothing else differs from the start"]

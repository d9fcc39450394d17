"""The price book as configured: the bundled map, and the files over it in their order."""

import socket
from pathlib import Path

from sqlalchemy import Engine

from gateway.config.aliases import logical_models
from gateway.config.settings import Settings
from gateway.control.os_user import os_user
from gateway.errors import ConfigError
from ledger.prices.book import PriceError
from ledger.prices.bundled import bundled_seed, load_price_file
from ledger.prices.drafts import DraftChanges
from ledger.prices.files import PriceFile
from ledger.prices.stored import ImportStamp, import_drafts


def store_prices(settings: Settings, engine: Engine, at_us: int) -> DraftChanges:
    """Bring the stored versions to what the files say, and add names that the map prices.

    Another price of the map for a name that has one waits for `breakeven prices import`.
    """
    drafts = list(bundled_seed().drafts)
    for file in _files(settings):
        drafts += file.drafts
    stamp = ImportStamp(actor=actor(), origin="start")
    try:
        return import_drafts(engine, drafts, at_us=at_us, keep_market=True, stamp=stamp)
    except PriceError as error:
        raise ConfigError([f"prices: {error}"]) from error


def names_in_use(settings: Settings) -> list[str]:
    """Every name that requests may be priced or compared by: targets at providers, comparators."""
    names: set[str] = set()
    for _, model in logical_models(settings):
        names |= set(model.compare_with)
        for target in model.targets:
            provider = settings.providers.get(target.partition("/")[0])
            if provider is not None:
                names.add(provider.prices_as or target)
    return sorted(names)


def actor() -> str:
    """Who acts, as the system knows it: `user@host`."""
    return f"{os_user()}@{socket.gethostname()}"


def price_aliases(settings: Settings) -> dict[str, str]:
    """Names that the files declare to be other names; a later file wins."""
    aliases: dict[str, str] = {}
    for file in _files(settings):
        aliases |= file.aliases
    return aliases


def _files(settings: Settings) -> list[PriceFile]:
    try:
        return [
            load_price_file(Path(name), rank=rank)
            for rank, name in enumerate(settings.prices, start=1)
        ]
    except PriceError as error:
        raise ConfigError([f"prices: {error}"]) from error

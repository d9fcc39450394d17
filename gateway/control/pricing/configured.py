"""The price book as configured: the bundled map, and the files over it in their order."""

import socket
from pathlib import Path

from sqlalchemy import Engine

from gateway.config.aliases import logical_models
from gateway.config.settings import Settings
from gateway.control.os_user import os_user
from gateway.errors import ConfigError
from ledger.prices.book import PriceError
from ledger.prices.files import load_price_file
from ledger.prices.start_prices import StartPrices, read_sources, store_start_prices


def store_prices(settings: Settings, engine: Engine, at_us: int) -> StartPrices:
    """Bring the stored versions to what the files say, and add names that the map prices.

    Another price of the map for a name that has one waits for `breakeven prices import`.
    """
    try:
        sources = read_sources(map(Path, settings.prices))
        return store_start_prices(engine, sources, actor=actor(), at_us=at_us)
    except PriceError as error:
        raise ConfigError([f"prices: {error}"]) from error


def names_in_use(settings: Settings) -> list[str]:
    """Every name that requests may be priced or compared by: targets at providers, comparators."""
    names: set[str] = set()
    for _, model in logical_models(settings):
        names |= set(model.compare_with)
        for target in model.reachable:
            provider = settings.providers.get(target.partition("/")[0])
            if provider is not None:
                names.add(provider.price_name(target))
    return sorted(names)


def actor() -> str:
    """Return the actor as the system knows it: `user@host`."""
    return f"{os_user()}@{socket.gethostname()}"


def price_aliases(settings: Settings) -> dict[str, str]:
    """Names that the files declare to be other names; a later file wins."""
    aliases: dict[str, str] = {}
    for rank, name in enumerate(settings.prices, start=1):
        try:
            aliases |= load_price_file(Path(name), rank=rank).aliases
        except PriceError as error:
            raise ConfigError([f"prices: {error}"]) from error
    return aliases

"""Configured price book: the bundled price map, and price files over it in order."""

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
    """Store the prices of the files, and add names that only the bundled map prices.

    A changed map price for a known name waits for `breakeven prices import`.
    """
    try:
        sources = read_sources(map(Path, settings.prices))
        return store_start_prices(engine, sources, actor=actor(), at_us=at_us)
    except PriceError as error:
        raise ConfigError([f"prices: {error}"]) from error


def names_in_use(settings: Settings) -> list[str]:
    """Return every name that may price a request: targets at providers, and comparators."""
    names: set[str] = set()
    for _, model in logical_models(settings):
        names |= set(model.compare_with)
        for target in model.reachable:
            provider = settings.providers.get(target.partition("/")[0])
            if provider is not None:
                names.add(provider.price_name(target))
    return sorted(names)


def actor() -> str:
    """Return the actor as `user@host`."""
    return f"{os_user()}@{socket.gethostname()}"


def price_aliases(settings: Settings) -> dict[str, str]:
    """Return the aliases that the price files declare; a later file wins."""
    aliases: dict[str, str] = {}
    for rank, name in enumerate(settings.prices, start=1):
        try:
            aliases |= load_price_file(Path(name), rank=rank).aliases
        except PriceError as error:
            raise ConfigError([f"prices: {error}"]) from error
    return aliases

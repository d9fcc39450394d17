"""The price book as configured: the bundled map, and the files over it in their order."""

from pathlib import Path

from sqlalchemy import Engine

from gateway.errors import ConfigError
from gateway.settings import Settings
from ledger.book import import_drafts
from ledger.drafts import Changes
from ledger.pricebook import bundled_seed, load_price_file
from ledger.pricefile import PriceFile
from ledger.prices import PriceError


def store_prices(settings: Settings, engine: Engine, at_us: int) -> Changes:
    """Bring the stored versions to what the map and the files say from this moment on."""
    drafts = list(bundled_seed().drafts)
    for found in _files(settings):
        drafts += found.drafts
    try:
        return import_drafts(engine, drafts, at_us=at_us)
    except PriceError as error:
        raise ConfigError([f"prices: {error}"]) from error


def price_aliases(settings: Settings) -> dict[str, str]:
    """Names that the files declare to be other names; a later file wins."""
    aliases: dict[str, str] = {}
    for found in _files(settings):
        aliases |= found.aliases
    return aliases


def _files(settings: Settings) -> list[PriceFile]:
    try:
        return [
            load_price_file(Path(name), rank=rank)
            for rank, name in enumerate(settings.prices, start=1)
        ]
    except PriceError as error:
        raise ConfigError([f"prices: {error}"]) from error

"""Address of the ledger, from configuration and environment."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from gateway.config.statedir import LEDGER
from gateway.errors import ConfigError
from ledger.database import sqlite_url

if TYPE_CHECKING:
    from gateway.config.schema import Settings


def database_of(url: str) -> str:
    """Return the database kind of a SQLAlchemy URL; empty for an invalid URL."""
    try:
        return make_url(url).get_backend_name()
    except (ArgumentError, ValueError):  # `ValueError` for an invalid port
        return ""


def ledger_url(settings: "Settings", environ: Mapping[str, str]) -> str:
    """Return the ledger's URL: configured, from the environment, or SQLite by the journals."""
    if settings.ledger.url is not None:
        return settings.ledger.url
    name = settings.ledger.url_env
    if name is None:
        return sqlite_url(settings.state.resolve() / LEDGER)
    if not (url := environ.get(name, "").strip()):  # stored secrets often end with a line break
        raise ConfigError([f"ledger.url_env: `{name}` is not set"])
    try:
        make_url(url)
    except (ArgumentError, ValueError):  # its message may contain a part of the password
        words = "must hold one address like postgresql://user@host/name"
        raise ConfigError([f"ledger.url_env: `{name}` {words}"]) from None
    return url

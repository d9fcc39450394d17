"""Translation of errors of the state directory or its ledger for users."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlalchemy.exc import DBAPIError

from gateway.config.statedir import LEDGER, translate_disk_errors
from gateway.errors import ConfigError
from ledger.database import DatabaseError

if TYPE_CHECKING:
    from gateway.config.schema import Settings


@contextmanager
def translate_state_errors(settings: "Settings") -> Iterator[None]:
    """Turn errors of disk or ledger in the block into one fault with setting and path."""
    try:
        with translate_disk_errors(settings):
            yield
    except DBAPIError as error:
        words = f"cannot be used: {error.orig}{_unlike(error)}"
        if settings.ledger.url or settings.ledger.url_env:
            raise DatabaseError(f"the ledger {words}") from error
        ledger = settings.state.resolve() / LEDGER
        raise ConfigError([f"state_dir: the ledger {ledger} {words}"]) from error


def _unlike(error: DBAPIError) -> str:
    """Return what to do about tables that do not match this version."""
    words, state = str(error.orig), getattr(error.orig, "sqlstate", None)
    if words.startswith(("no such table", "no such column")) or state in ("42P01", "42703"):
        return "; another version made it: `breakeven serve` brings it up to this one"
    return ""

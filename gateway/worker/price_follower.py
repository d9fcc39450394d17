"""Follower of the price book: new price versions apply to requests that begin after them.

A worker reads the new versions and replaces the whole price book. Open requests keep the price of
their decision. While the database is unavailable, the known prices stay.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from sqlalchemy.exc import DBAPIError

from gateway.fleet.candidates import CandidateBuilder
from ledger.prices.book import Price, PriceBook, PriceError

_log = logging.getLogger(__name__)

ReadNewer = Callable[[int], Sequence[Price]]


class PriceFollower:
    """Follower of price versions, one per worker.

    `newer` reads the versions above a number; it may block.
    """

    def __init__(self, book: PriceBook, newer: ReadNewer, candidates: CandidateBuilder) -> None:
        self.known = book.newest_version
        self._book = book
        self._newer = newer
        self._candidates = candidates

    async def follow(self, newest: int) -> bool:
        """Load new price versions; return False if they cannot be read or used now."""
        try:
            book = await asyncio.to_thread(self._read)
        except DBAPIError:
            return False  # the next poll retries
        except PriceError as error:
            _log.warning("new prices are invalid, keeping the known ones error=%s", error)
            self.known = newest
            return False
        if book is None:
            return False
        self._candidates.reprice(book)
        self._book, self.known = book, book.newest_version
        return True

    def _read(self) -> PriceBook | None:
        prices = self._newer(self._book.newest_version)
        return self._book.with_prices(prices) if prices else None
